//! Where every request passes: lanes, time limits, credentials that are renewed, and the server's
//! wish to be left alone for a while.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{Request, Response, StatusCode};
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::timeout;
use tracing::debug;

use crate::access::{Opened, Surroundings, open};
use crate::body::{Unread, whole};
use crate::call::Call;
use crate::lanes::Lanes;
use crate::pace::Pace;
use crate::refusal::{Status, chain, refused};
use crate::{Access, Error, Options};

/// The most that is read of one answer.
const LARGEST_ANSWER: usize = 64 << 20;
/// The most that is read of a refusal.
const LARGEST_REFUSAL: usize = 1 << 20;
/// How often a throttled request is tried in all.
const THROTTLED_TRIES: u32 = 4;

/// The one way to the server.
pub(crate) struct Door {
    access: Access,
    around: Surroundings,
    server: String,
    agent: HeaderValue,
    lanes: Lanes,
    pub(crate) pace: Pace,
    keys: Mutex<Arc<Keys>>,
    renewing: tokio::sync::Mutex<()>,
}

/// A client with the credentials of one reading.
struct Keys {
    client: kube::Client,
    /// Which reading.
    number: u64,
    read: Instant,
}

impl Door {
    pub(crate) async fn open(
        options: &Options,
        around: Surroundings,
        pace: Pace,
    ) -> Result<Self, Error> {
        let Opened { client, server } = open(&options.access, &around).await?;
        let agent = HeaderValue::from_str(&options.agent)
            .map_err(|_| Error::Credentials("the user agent must be plain text".into()))?;
        Ok(Self {
            access: options.access.clone(),
            around,
            server,
            agent,
            lanes: Lanes::new(options.connections),
            pace,
            keys: Mutex::new(Arc::new(Keys { client, number: 0, read: Instant::now() })),
            renewing: tokio::sync::Mutex::new(()),
        })
    }

    /// The server's address.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// The whole answer to a request.
    pub(crate) async fn answer(&self, call: &Call) -> Result<Vec<u8>, Error> {
        let mut tries = 1;
        loop {
            let work = async {
                let body = self.send(call).await?.into_body();
                whole(body, LARGEST_ANSWER).await.map_err(|e| self.unread(call, e))
            };
            match self.in_lane(call, work).await {
                Err(error) if self.waited(&error, &mut tries).await => {}
                outcome => return outcome,
            }
        }
    }

    /// The body of an answer that goes on for long. Only its beginning takes a place in the lanes
    /// and has a time limit.
    pub(crate) async fn stream(&self, call: &Call) -> Result<Body, Error> {
        let mut tries = 1;
        loop {
            let work = async { self.send(call).await.map(Response::into_body) };
            match self.in_lane(call, work).await {
                Err(error) if self.waited(&error, &mut tries).await => {}
                outcome => return outcome,
            }
        }
    }

    async fn in_lane<T>(
        &self,
        call: &Call,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let _place = self.lanes.enter(call.lane).await;
        timeout(self.pace.request, work).await.unwrap_or_else(|_| {
            let why = format!("no answer within {:?} to {}", self.pace.request, call.about);
            Err(self.unreachable(why))
        })
    }

    /// Waits as long as a server that has too much to do asks for. False if it does not ask, or asks
    /// for more than we are ready to wait.
    async fn waited(&self, error: &Error, tries: &mut u32) -> bool {
        let Error::Throttled { after, .. } = error else { return false };
        if *tries >= THROTTLED_TRIES || *after > self.pace.throttled {
            return false;
        }
        *tries += 1;
        debug!(server = %self.server, ?after, "throttled");
        tokio::time::sleep(*after).await;
        true
    }

    /// Sends it; with fresh credentials once more if the server does not accept these.
    async fn send(&self, call: &Call) -> Result<Response<Body>, Error> {
        let mut keys = self.keys.lock().clone();
        if expires_soon(&keys.client) && self.renew(&keys).await? {
            keys = self.keys.lock().clone();
        }
        let mut response = self.send_with(&keys.client, call).await?;
        if response.status() == StatusCode::UNAUTHORIZED && self.renew(&keys).await? {
            let keys = self.keys.lock().clone();
            response = self.send_with(&keys.client, call).await?;
        }
        if response.status().is_success() {
            return Ok(response);
        }
        let (code, after) = (response.status().as_u16(), retry_after(&response));
        let body = whole(response.into_body(), LARGEST_REFUSAL).await.unwrap_or_default();
        Err(refused(&self.server, &call.about, Status::read(code, &body), after))
    }

    async fn send_with(&self, client: &kube::Client, call: &Call) -> Result<Response<Body>, Error> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(&call.path)
            .header(USER_AGENT, self.agent.clone())
            .header(ACCEPT, "application/json");
        if let Some(content_type) = call.content_type {
            request = request.header(CONTENT_TYPE, content_type);
        }
        let request = request.body(Body::from(call.body.clone())).map_err(|e| Error::Invalid {
            what: call.about.object(),
            why: format!("it makes no valid request: {e}"),
        })?;
        client.send(request).await.map_err(|e| self.unsent(&e))
    }

    /// Reads the credentials again, unless somebody just did. Says whether there are new ones.
    async fn renew(&self, used: &Keys) -> Result<bool, Error> {
        let _one_at_a_time = self.renewing.lock().await;
        let now = self.keys.lock().clone();
        if now.number != used.number {
            return Ok(true);
        }
        if now.read.elapsed() < self.pace.renewal {
            return Ok(false);
        }
        let Opened { client, .. } = open(&self.access, &self.around).await?;
        let fresh = Keys { client, number: now.number + 1, read: Instant::now() };
        *self.keys.lock() = Arc::new(fresh);
        debug!(server = %self.server, "credentials read again");
        Ok(true)
    }

    fn unsent(&self, error: &kube::Error) -> Error {
        let plugin = match error {
            kube::Error::Auth(_) => true,
            kube::Error::Service(inner) => inner.is::<kube::client::AuthError>(),
            _ => false,
        };
        if plugin { Error::Credentials(chain(error)) } else { self.unreachable(chain(error)) }
    }

    fn unread(&self, call: &Call, unread: Unread) -> Error {
        match unread {
            Unread::Broken(why) => self.unreachable(why),
            Unread::TooLong(limit) => Error::TooLarge {
                what: call.about.object(),
                why: format!("the answer has more than {limit} bytes"),
            },
        }
    }

    fn unreachable(&self, why: String) -> Error {
        Error::Unreachable { server: self.server.clone(), why }
    }
}

/// Whether a certificate that a credential plugin made is about to end. Tokens are seen to by the
/// library.
fn expires_soon(client: &kube::Client) -> bool {
    let Some(until) = client.valid_until() else { return false };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).is_ok_and(|now| now + 60 >= until.as_second())
}

fn retry_after(response: &Response<Body>) -> Option<Duration> {
    let text = response.headers().get(RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests;
