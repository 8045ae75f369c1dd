//! How a server says no: written once, for the hub and for the agent, each with its own codes.

/// Makes the kinds of problem of one server: an enum `Code`, each with its status, code and title, a
/// `Fault` that answers a request with a [`Problem`](crate::api::Problem), and `Told`, which tells
/// those who count which code an answer bears. The caller needs `axum`.
#[macro_export]
macro_rules! problems {
    ($($name:ident = $code:literal, $status:literal, $title:literal;)+) => {
        /// A kind of problem.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $(#[doc = $title] $name),+ }

        impl Code {
            /// Every code, for a test that each has its page.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// As people see it.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code),+ }
            }

            /// The HTTP status that goes with it.
            pub fn status(self) -> u16 {
                match self { $(Self::$name => $status),+ }
            }

            /// What it is, in a few words that do not change.
            pub fn title(self) -> &'static str {
                match self { $(Self::$name => $title),+ }
            }

            /// A problem of this kind.
            pub(crate) fn problem(self) -> Fault {
                let problem =
                    $crate::api::Problem::new(self.status(), self.as_str(), self.title());
                Fault(Box::new(problem))
            }

            /// A problem of this kind, with what it is this time.
            pub(crate) fn because(self, detail: impl std::fmt::Display) -> Fault {
                let mut fault = self.problem();
                fault.0.detail = detail.to_string();
                fault
            }
        }

        /// A problem as the answer to a request.
        #[derive(Clone, Debug)]
        pub(crate) struct Fault(pub(crate) Box<$crate::api::Problem>);

        impl Fault {
            /// The same, with what to do about it.
            pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
                self.0.hint = Some(hint.into());
                self
            }

            /// The same, with the rev that is there.
            pub(crate) fn rev(mut self, rev: Option<u64>) -> Self {
                self.0.rev = rev;
                self
            }
        }

        /// The code of a problem, for those who count.
        #[derive(Clone, Debug)]
        pub(crate) struct Told(pub(crate) String);

        impl axum::response::IntoResponse for Fault {
            fn into_response(self) -> axum::response::Response {
                use axum::http::{HeaderValue, StatusCode, header};
                let status =
                    StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::BAD_REQUEST);
                let body = serde_json::to_vec(&self.0);
                let body = body.expect("plain data with text keys always encodes");
                let kind = HeaderValue::from_static($crate::api::Problem::MEDIA_TYPE);
                let mut response = (status, [(header::CONTENT_TYPE, kind)], body).into_response();
                let headers = response.headers_mut();
                if status == StatusCode::UNAUTHORIZED {
                    headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                }
                if let Some(seconds) = self.0.retry_after {
                    headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
                }
                response.extensions_mut().insert(Told(self.0.code));
                response
            }
        }
    };
}
