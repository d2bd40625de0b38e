//! Label selectors (`meta/v1.LabelSelector`), as the API server reads them.

use serde_json::{Map, Value};

/// Whether a selector takes an object with these labels. One that is missing takes everything.
pub(super) fn takes(selector: Option<&Value>, labels: Option<&Map<String, Value>>) -> bool {
    let Some(selector) = selector.and_then(Value::as_object) else { return true };
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    let wanted = selector.get("matchLabels").and_then(Value::as_object);
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    wanted.into_iter().flatten().all(|(key, value)| label(key) == value.as_str())
        && expressions.into_iter().flatten().all(|expression| {
            let text = |field: &str| expression.get(field).and_then(Value::as_str).unwrap_or_default();
            let found = label(text("key"));
            let values = expression.get("values").and_then(Value::as_array);
            let listed = values.into_iter().flatten().any(|value| value.as_str() == found && found.is_some());
            match text("operator") {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::takes;

    #[test]
    fn every_operator_is_understood() {
        let labels = json!({"a": "1", "b": "2"});
        for (selector, expected) in [
            (json!(null), true),
            (json!({}), true),
            (json!({"matchLabels": {"a": "1"}}), true),
            (json!({"matchLabels": {"a": "2"}}), false),
            (json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1", "3"]}]}), true),
            (json!({"matchExpressions": [{"key": "c", "operator": "In", "values": ["1"]}]}), false),
            (json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}), false),
            (json!({"matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["1"]}]}), true),
            (json!({"matchExpressions": [{"key": "b", "operator": "Exists"}]}), true),
            (json!({"matchExpressions": [{"key": "b", "operator": "DoesNotExist"}]}), false),
            (json!({"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}), false),
        ] {
            assert_eq!(takes(Some(&selector), labels.as_object()), expected, "{selector}");
        }
    }
}
