//! The agent takes what the webhook injects.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test that cannot go on must fail")]

use std::sync::Arc;

use clap::Parser as _;
use futures::FutureExt as _;
use gmsa_core::admission::{Decision, Review, Settings, TicketSettings, Webhook};
use gmsa_test_support::golden::sidecar;
use gmsa_tickets::agent;
use serde_json::{Value, json};

#[derive(clap::Parser)]
struct Agent {
    #[command(flatten)]
    _args: agent::Args,
}

#[test]
fn the_agent_takes_the_arguments_that_the_webhook_injects() {
    let (tickets, keytab) = (json!({"gmsa-webhook/tickets": "webapp1"}), json!({"gmsa-webhook/keytab": "webapp1"}));
    let both = json!({"gmsa-webhook/tickets": "webapp1", "gmsa-webhook/keytab": "web"});
    for (fs_group, annotations) in
        [(Value::Null, &tickets), (json!(2000), &tickets), (json!(2000), &keytab), (Value::Null, &both)]
    {
        let metadata = json!({"name": "web", "annotations": annotations});
        let spec = json!({"securityContext": {"fsGroup": fs_group}, "containers": [{"name": "app"}]});
        let review = Review::of_pod("shop", &json!({"metadata": metadata, "spec": spec})).unwrap();
        let settings = Settings { tickets: TicketSettings::On(Arc::new(sidecar())), ..Settings::default() };
        let decision = Decision::begin(review, Webhook::Mutate, settings)
            .answered_by(async |question| panic!("{question:?}"))
            .now_or_never()
            .unwrap();
        let patch: Value = serde_json::from_slice(&decision.patch.unwrap()).unwrap();
        let sidecar = &patch.as_array().unwrap().last().unwrap()["value"][0];
        let words = |list: &Value| -> Vec<String> { serde_json::from_value(list.clone()).unwrap() };
        let (args, probe) = (words(&sidecar["args"]), words(&sidecar["startupProbe"]["exec"]["command"]));
        assert_eq!((&*args[0], &probe[..2]), ("agent", &["/gmsa-tickets".to_owned(), "agent".to_owned()][..]));
        for line in [&args[..], &probe[1..]] {
            assert!(Agent::try_parse_from(line).is_ok(), "{line:?}");
        }
    }
}
