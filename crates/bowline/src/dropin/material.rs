//! Certificates and keys from Secrets or files, followed: what is renewed is used without a restart.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use bowline_kube::{Heard, Scope, Watch};

use super::objects::{Secret, Site};
use crate::failure::{Failure, Outcome, chain};

/// How often files are looked at.
const LOOK: Duration = Duration::from_secs(5);

/// Where a piece of PEM text is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A file.
    File(PathBuf),
    /// Fields of a Secret: those of the list that it has, one after the other; none named: all.
    Secret {
        /// The Secret.
        name: String,
        /// The fields.
        fields: &'static [&'static str],
    },
}

impl Source {
    async fn read(&self, site: &Site) -> Outcome<String> {
        match self {
            Self::File(path) => std::fs::read_to_string(path)
                .map_err(|e| Failure::new(format!("reading {}: {e}", path.display()))),
            Self::Secret { name, fields } => {
                let hint = "`argocd-agentctl pki` and `jwt` make such Secrets";
                text_of(&site.needed(name, hint).await?, fields)
            }
        }
    }
}

fn text_of(secret: &Secret, fields: &[&str]) -> Outcome<String> {
    let wanted = |field: &&String| fields.is_empty() || fields.contains(&field.as_str());
    let found: Vec<_> = secret.data.keys().filter(wanted).collect();
    if found.is_empty() {
        let what = format!("the Secret {} has none of {}", secret.name, fields.join(", "));
        return Err(Failure::new(what).hint("make it anew, or name another"));
    }
    let texts = found.into_iter().map(|field| secret.text(field));
    Ok(texts.collect::<Outcome<Vec<_>>>()?.join("\n"))
}

/// Several pieces that are used together.
#[derive(Debug)]
pub(crate) struct Material {
    site: Site,
    sources: Vec<Source>,
    /// What was read last, in the order of the sources.
    pub(crate) texts: Vec<String>,
}

impl Material {
    /// Reads all of it.
    pub(crate) async fn read(site: Site, sources: Vec<Source>) -> Outcome<Self> {
        let mut material = Self { site, sources, texts: vec![] };
        material.texts = material.again().await?;
        Ok(material)
    }

    async fn again(&self) -> Outcome<Vec<String>> {
        let mut texts = vec![];
        for source in &self.sources {
            texts.push(source.read(&self.site).await?);
        }
        Ok(texts)
    }

    /// Calls `changed` whenever another text is there; one that cannot be used is told to the log, and
    /// what was used before stays in use. Never ends.
    pub(crate) async fn follow(mut self, mut changed: impl FnMut(&[String]) -> Outcome) {
        let mut watch = self.watch().await;
        loop {
            self.wait(&mut watch).await;
            match self.again().await {
                Ok(texts) if texts == self.texts => {}
                Ok(texts) => {
                    match changed(&texts) {
                        Ok(()) => tracing::info!("certificates read again"),
                        Err(error) => {
                            tracing::error!(
                                error = error.message,
                                "certificates stay as they were"
                            );
                        }
                    }
                    self.texts = texts;
                }
                Err(error) => {
                    tracing::warn!(error = error.message, "certificates stay as they were");
                }
            }
        }
    }

    fn names(&self) -> BTreeSet<&str> {
        let names = self.sources.iter().filter_map(|source| match source {
            Source::Secret { name, .. } => Some(name.as_str()),
            Source::File(_) => None,
        });
        names.collect()
    }

    async fn watch(&self) -> Option<Watch> {
        if self.names().is_empty() {
            return None;
        }
        match self.site.cluster.kind("", "Secret").await {
            Ok(kind) => {
                let scope = Scope::Namespaces(vec![self.site.namespace.clone()]);
                Some(self.site.cluster.watch(&kind, scope, None))
            }
            Err(error) => {
                tracing::warn!(error = chain(&error), "Secrets are looked at now and then only");
                None
            }
        }
    }

    /// Waits until it is worth a look: a Secret of ours changed, or time has passed for files.
    async fn wait(&self, watch: &mut Option<Watch>) {
        let pause = tokio::time::sleep(LOOK);
        let files = self.sources.iter().any(|source| matches!(source, Source::File(_)));
        let Some(watch) = watch else { return pause.await };
        let names = self.names();
        tokio::pin!(pause);
        loop {
            let heard = tokio::select! {
                heard = watch.next() => heard,
                () = &mut pause, if files => return,
            };
            match heard {
                Heard::Put(object) if names.contains(object.metadata.name.as_str()) => return,
                Heard::Trouble(error) => {
                    tracing::warn!(error = chain(&error), "Secrets cannot be followed for now");
                }
                Heard::Put(_) | Heard::Gone { .. } | Heard::Missed { .. } | Heard::Listed => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_that_a_secret_has_are_put_together() {
        let secret = Secret::new("s", "Opaque", &[("ca.crt", "CA"), ("tls.crt", "CERT")]);
        assert_eq!(text_of(&secret, &["tls.crt"]).unwrap(), "CERT");
        assert_eq!(text_of(&secret, &["tls.crt", "ca.crt"]).unwrap(), "CA\nCERT");
        assert_eq!(text_of(&secret, &[]).unwrap(), "CA\nCERT");
        assert!(text_of(&secret, &["tls.key"]).unwrap_err().message.contains("tls.key"));
    }
}
