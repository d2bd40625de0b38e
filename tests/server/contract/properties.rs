//! What holds for any pod, any contents and any bytes.

use gmsa_core::credspec::{Contents, compare::compare};
use proptest::{
    collection::vec,
    option,
    prelude::*,
    sample::{Index, select},
};
use serde_json::{Map, Value, json};

use super::{
    golden, hostile,
    oracle::{LISTS, Slot, World, created, is_valid_name, slots, updated},
    world::{mutate, review, validate, warned},
};
use crate::reviews::slot;

const SPECS: [&str; 3] = ["web", "db", "cache"];

fn specs() -> Map<String, Value> {
    let specs = json!({
        "web": {"account": "web", "domain": "contoso"},
        "db": {"account": "db", "more": [{"Name": "db"}]},
        "cache": {},
    });
    specs.as_object().unwrap().clone()
}

/// Contents of a credential spec, whole, rewritten or spoilt; often not of the one that the slot names.
fn contents() -> impl Strategy<Value = String> {
    let of = |spec: &str| specs()[spec].to_string();
    let texts: Vec<String> = SPECS.iter().map(|spec| of(spec)).collect();
    let mut more = vec![
        r#" {"domain" : "contoso", "account":"web"}"#.to_owned(),
        r#"{"account":"admin","account":"web","domain":"contoso"}"#.to_owned(),
        r#"{"account":"db","more":[{"Name":"admin","Name":"db"}]}"#.to_owned(),
        r#"{"account":"admin","domain":"contoso"}"#.to_owned(),
        "{".to_owned(),
        String::new(),
    ];
    more.extend(texts);
    select(more)
}

fn any_slot() -> impl Strategy<Value = Value> {
    let names = select(vec!["web", "web", "db", "cache", "missing", "Not-A-Name", ""]);
    (option::of(names), option::weighted(0.7, contents())).prop_map(|(name, contents)| slot(name, contents.as_deref()))
}

/// A pod with up to three containers of each kind.
fn any_pod() -> impl Strategy<Value = Value> {
    let containers = || vec(option::weighted(0.7, any_slot()), 0..=3);
    (option::of(any_slot()), [containers(), containers(), containers()], any::<bool>()).prop_map(
        |(own, lists, backwards)| {
            let mut pod = json!({"metadata": {"name": "p"}, "spec": {"securityContext": own}});
            for ((list, _), slots) in LISTS.iter().zip(lists) {
                let container = |(at, slot)| json!({"name": format!("c{at}"), "securityContext": slot});
                let mut containers: Vec<Value> = slots.into_iter().enumerate().map(container).collect();
                if backwards {
                    containers.reverse();
                }
                pod["spec"][*list] = json!(containers);
            }
            pod
        },
    )
}

fn world() -> impl Strategy<Value = World> {
    let names = || vec(select(vec!["web", "db", "cache", "missing"]).prop_map(str::to_owned), 0..=4);
    (names(), names(), 0u8..4).prop_map(|(mut allowed, unknown, some_unknown)| {
        allowed.push("web".to_owned());
        World { specs: specs(), allowed, unknown: if some_unknown == 0 { unknown } else { Vec::new() } }
    })
}

/// Another slot in the place of one that is there, or in one more container of a list.
type Change = (Index, Option<&'static str>, Option<Value>);

fn any_change() -> impl Strategy<Value = Change> {
    (any::<Index>(), option::of(select(LISTS.map(|(list, _)| list).to_vec())), option::of(any_slot()))
}

fn change(pod: &mut Value, (at, list, slot): &Change) {
    if let Some(list) = list {
        let containers = pod["spec"][list].as_array_mut().unwrap();
        containers.insert(0, json!({"name": format!("new-{}", containers.len()), "securityContext": slot}));
    } else {
        let slots = slots(pod);
        *pod.pointer_mut(&slots[at.index(slots.len())].pointer).unwrap() = json!(slot);
    }
}

/// The paths of an update.
fn sub_resource() -> impl Strategy<Value = &'static str> {
    select(vec!["", "status", "resize", "ephemeralcontainers", "ephemeralcontainers"])
}

fn create(pod: &Value) -> Value {
    review("CREATE", "", pod, &Value::Null)
}

/// The pod with contents in the slots that count, or the code of the denial: a name that cannot be one decides first.
fn expanded(pod: &Value, world: &World, counts: impl Fn(&Slot) -> bool) -> Result<Value, u16> {
    let slots: Vec<_> = slots(pod).into_iter().filter(|slot| slot.name.is_some() && counts(slot)).collect();
    if slots.iter().any(|slot| !slot.name.as_deref().is_some_and(is_valid_name)) {
        return Err(422);
    }
    let mut expanded = pod.clone();
    for slot in slots.into_iter().filter(|slot| slot.contents.is_none()) {
        let contents = world.specs.get(&slot.name.unwrap()).ok_or(404_u16)?.to_string();
        let options = expanded.pointer_mut(&slot.pointer).unwrap();
        options["windowsOptions"]["gmsaCredentialSpec"] = json!(contents);
    }
    Ok(expanded)
}

proptest! {
    #[test]
    fn a_new_pod_is_judged_as_the_oracle_judges_it(pod in any_pod(), world in world()) {
        let expected = slots(&pod).iter().try_for_each(|slot| created(slot, &world));
        let outcome = validate(&create(&pod), &world);
        prop_assert_eq!(outcome, expected);
    }

    #[test]
    fn an_updated_pod_is_judged_as_the_oracle_judges_it(
        old in any_pod(), new in option::weighted(0.2, any_pod()), changes in vec(any_change(), 0..=2),
        sub_resource in sub_resource(), world in world(),
    ) {
        // Two pods that have nothing in common are refused at once: mostly the new one is the old one with few changes.
        let mut new = new.unwrap_or_else(|| old.clone());
        for one in &changes {
            change(&mut new, one);
        }
        let outcome = validate(&review("UPDATE", sub_resource, &new, &old), &world);
        prop_assert_eq!(outcome, updated(&old, &new, &world));
    }

    #[test]
    fn without_enforcement_every_denial_is_a_warning(pod in any_pod(), world in world()) {
        let world = World { unknown: Vec::new(), ..world };
        let expected: Vec<_> = slots(&pod).iter().filter_map(|slot| created(slot, &world).err()).collect();
        let (denials, lines) = warned(&create(&pod), &world);
        prop_assert_eq!(&denials, &expected);
        // Slots that are denied with the same words share a line.
        prop_assert!(lines.len() <= denials.len() && lines.is_empty() == denials.is_empty(), "{:?}", lines);
    }

    #[test]
    fn a_pod_is_expanded_as_the_oracle_expands_it_and_not_again(
        old in option::of(any_pod()), new in any_pod(), sub_resource in sub_resource(), world in world(),
    ) {
        let expected = match &old {
            None => expanded(&new, &world, |_| true),
            Some(old) => {
                let before = slots(old);
                let is_new = |slot: &Slot| !before.iter().any(|was| (was.kind, &was.owner) == (slot.kind, &slot.owner));
                let is_added = |slot: &Slot| slot.kind == "ephemeral container" && is_new(slot);
                expanded(&new, &world, |slot| sub_resource == "ephemeralcontainers" && is_added(slot))
            }
        };
        let asked = match &old {
            None => create(&new),
            Some(old) => review("UPDATE", sub_resource, &new, old),
        };
        let outcome = mutate(&asked, &world);
        prop_assert_eq!(outcome.as_ref().ok().map(Option::is_some), expected.as_ref().ok().map(|pod| *pod != new));
        let patched = outcome.map_err(|(code, _)| code).map(|patch| {
            let mut pod = new.clone();
            if let Some(patch) = patch {
                json_patch::patch(&mut pod, &patch).unwrap();
            }
            pod
        });
        if let (Ok(pod), None) = (&patched, &old) {
            prop_assert_eq!(mutate(&create(pod), &world), Ok(None));
        }
        prop_assert_eq!(patched, expected);
    }

    #[test]
    fn key_order_white_space_and_escapes_never_matter(value in object(), choices in vec(any::<u8>(), 1..200)) {
        let contents = Contents::of(value.as_object().unwrap());
        let text = scrambled(&value, &mut choices.iter().copied().cycle());
        prop_assert_eq!(compare(&text, &contents), Ok(()), "{}", text);
        hostile::contents(text.as_bytes());
    }

    #[test]
    fn another_value_is_never_equal(one in object(), other in object()) {
        let contents = Contents::of(one.as_object().unwrap());
        prop_assert_eq!(compare(&other.to_string(), &contents).is_ok(), one == other);
        hostile::compared(&one.to_string(), &other.to_string());
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in vec(any::<u8>(), 0..300), text in any::<String>()) {
        hostile::review(&bytes);
        hostile::contents(&bytes);
        hostile::compared(&text, "{}");
        hostile::compared("{}", &text);
        hostile::linted(&text);
    }

    #[test]
    fn spoilt_reviews_are_answered_or_refused_without_a_panic(
        case in any::<Index>(), cuts in vec((any::<Index>(), spoiler()), 1..4),
    ) {
        let cases = golden::reviews();
        let mut body = case.get(cases).clone();
        for (at, (removed, put)) in cuts {
            let start = at.index(body.len() + 1);
            let end = body.len().min(start + removed);
            body.splice(start..end, put);
        }
        hostile::review(&body);
    }
}

/// How many bytes are taken out of a review, and what is put in their place.
fn spoiler() -> impl Strategy<Value = (usize, Vec<u8>)> {
    let words =
        ["", "null", "{}", "[]", "\"\"", "0", "1e999", "{", "}", "]", ",", "\"", "\\", "\\ud800", "[[[[", "\u{0}", "é"];
    let put = prop_oneof![select(words.to_vec()).prop_map(|word| word.as_bytes().to_vec()), vec(any::<u8>(), 0..8)];
    (prop_oneof![Just(0usize), 0usize..6, 0usize..3000], put)
}

fn object() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-100i64..100).prop_map(Value::from),
        // A float64 with no fraction is equal to an integer, which serde_json's own comparison does not know.
        any::<f64>()
            .prop_filter("finite, with a fraction", |f| f.is_finite() && f.fract() != 0.0)
            .prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        select(vec!["a", "<&>", "\u{2028}", "\\\""]).prop_map(Value::from),
    ];
    let value = leaf
        .prop_recursive(4, 24, 4, |inner| prop_oneof![vec(inner.clone(), 0..4).prop_map(Value::from), fields(inner)]);
    fields(value)
}

fn fields(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let key = prop_oneof![select(vec!["a", "b", "Sid", "<", ""]).prop_map(str::to_owned), any::<String>()];
    vec((key, value), 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect()))
}

/// A value with its keys in some order, white space in some places and some characters escaped.
fn scrambled(value: &Value, choices: &mut impl Iterator<Item = u8>) -> String {
    let mut choose = |of: u8| usize::from(choices.next().unwrap() % of);
    let space = ["", " ", "\n\t", "\r\n  "][choose(4)];
    let turn = choose(3);
    let plain = match value {
        Value::String(text) => scrambled_text(text, choose(2) == 0),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(|item| scrambled(item, choices)).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(map) => {
            let field = |(at, (key, item)): (usize, (&String, &Value))| {
                format!("{}{space}:{}", scrambled_text(key, at % 2 == 1), scrambled(item, choices))
            };
            let mut fields: Vec<_> = map.iter().enumerate().map(field).collect();
            let turn = turn.min(fields.len());
            fields.rotate_left(turn);
            format!("{{{}}}", fields.join(","))
        }
        plain => plain.to_string(),
    };
    format!("{space}{plain}{space}")
}

fn scrambled_text(text: &str, escape: bool) -> String {
    if !escape {
        return Value::from(text).to_string();
    }
    let units: Vec<_> = text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
    format!("\"{}\"", units.concat())
}
