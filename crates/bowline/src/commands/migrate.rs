//! `bowline migrate`: from argocd-agent to here, step by step.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::dropin::migrate::{Plan, Side, look, plan};
use crate::dropin::objects::{Site, access};
use crate::failure::{Failure, Outcome};
use crate::print;

/// Look at an installation of argocd-agent, and print how to replace it; nothing is changed
#[derive(Args, Debug)]
pub(super) struct Migrate {
    /// The kubeconfig; else as KUBECONFIG says, else the usual one
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the control plane
    #[arg(long, value_name = "NAME", env = "ARGOCD_AGENT_PRINCIPAL_CONTEXT")]
    principal_context: Option<String>,
    /// The namespace of the principal
    #[arg(
        long,
        value_name = "NAME",
        env = "ARGOCD_AGENT_PRINCIPAL_NAMESPACE",
        default_value = "argocd"
    )]
    principal_namespace: String,
    /// The context of an agent's cluster, to look at it too
    #[arg(long, value_name = "NAME", env = "ARGOCD_AGENT_AGENT_CONTEXT")]
    agent_context: Option<String>,
    /// The namespace of the agent
    #[arg(long, value_name = "NAME", env = "ARGOCD_AGENT_AGENT_NAMESPACE")]
    agent_namespace: Option<String>,
    /// How to print
    #[arg(long, short = 'o', value_enum, default_value_t)]
    output: Shape,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Shape {
    #[default]
    Text,
    Json,
}

impl Migrate {
    pub(super) async fn run(&self) -> Outcome {
        let site = async |context: &Option<String>, namespace: &str| {
            let access = access(self.kubeconfig.clone(), context.clone());
            Ok::<_, Failure>((context.clone(), Site::open(access, namespace).await?))
        };
        let principal = site(&self.principal_context, &self.principal_namespace).await?;
        // A namespace alone means that both are on one cluster.
        let agent = match (&self.agent_context, &self.agent_namespace) {
            (None, None) => None,
            (None, Some(namespace)) => Some(site(&self.principal_context, namespace).await?),
            (context, namespace) => {
                Some(site(context, namespace.as_deref().unwrap_or("argocd")).await?)
            }
        };
        let found = look(Some(principal), agent).await?;
        let plan = plan(found, print::now().0);
        match self.output {
            Shape::Json => {
                let text = serde_json::to_string_pretty(&plan);
                let text = text.map_err(|e| Failure::new(format!("writing JSON: {e}")))?;
                print::out(&format!("{text}\n"))
            }
            Shape::Text => print::out(&text(&plan)),
        }
    }
}

fn text(plan: &Plan) -> String {
    let mut out = String::from("FOUND\n");
    for (role, side) in [("principal", &plan.found.principal), ("agent", &plan.found.agent)] {
        if let Some(side) = side {
            describe(&mut out, role, side);
        }
    }
    let _ = writeln!(out, "  mapping: by {}", plan.found.mapping);
    for known in &plan.found.agents {
        let (name, mode, count) = (&known.name, known.mode, known.applications);
        let _ = writeln!(out, "  agent {name}: {mode}, {count} Applications");
    }
    list(&mut out, "\nBEFORE YOU BEGIN\n", &plan.warnings);
    for (number, step) in plan.steps.iter().enumerate() {
        let _ = writeln!(out, "\nSTEP {}: {}", number + 1, step.title);
        for command in &step.commands {
            let _ = writeln!(out, "  {command}");
        }
        let _ = writeln!(out, "  stays: {}", step.stays);
        list(&mut out, "  check:\n", &step.check);
        list(&mut out, "  back:\n", &step.back);
    }
    if !plan.steps.is_empty() {
        out.push_str("\nIMAGE is an image of Bowline; deploy/README.md says how to build one.\n");
    }
    list(&mut out, "\nWHAT WILL BE DIFFERENT\n", &plan.lacks);
    out
}

fn describe(out: &mut String, role: &str, side: &Side) {
    let place = &side.namespace;
    let _ = match &side.workload {
        Some(w) => writeln!(out, "  {role}: {} {place}/{}, {}", w.kind, w.name, w.image),
        None => writeln!(out, "  {role}: nothing runs it in {place}"),
    };
    for item in &side.objects {
        let until = item.until.as_ref().map_or(String::new(), |until| format!(", until {until}"));
        let _ = writeln!(out, "    {} {}: {}{until}", item.kind, item.name, item.holds);
    }
}

fn list(out: &mut String, title: &str, lines: &[String]) {
    if !lines.is_empty() {
        out.push_str(title);
        lines.iter().for_each(|line| _ = writeln!(out, "    {line}"));
    }
}
