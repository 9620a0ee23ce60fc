use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::kinds::etcdcluster::resources::tests::{cluster, plain};

#[test]
fn members_are_found_by_the_names_that_they_advertise() {
    let tls = cluster(&json!({}));
    assert_eq!(plain().peer_url(Ordinal(0)), "http://c-0.c.shop.svc:2380");
    assert_eq!(tls.peer_url(Ordinal(12)), "https://c-12.c.shop.svc:2380");
    assert_eq!(tls.client_url(Ordinal(2)), "https://c-2.c.shop.svc:2379");
}

#[test]
fn a_peer_url_that_we_would_not_write_belongs_to_no_member() {
    let cluster = plain();
    for text in [
        "https://c-0.c.shop.svc:2380",
        "http://c-0.c.shop.svc:2379",
        "http://c-0.c.shop.svc.cluster.local:2380",
        "http://c-0.c.other.svc:2380",
        "http://c-00.c.shop.svc:2380",
        "http://c-0.c.shop.svc:2380/",
        "http://d-0.c.shop.svc:2380",
        "http://10.0.0.1:2380",
        "c-0.c.shop.svc:2380",
        "",
    ] {
        assert_eq!(cluster.ordinal_of(text), None, "{text}");
    }
}

#[test]
fn a_pod_of_another_name_has_no_ordinal() {
    for pod in ["c", "c-", "c-x", "c-01", "c-+1", "c--1", "c-1-2", "cc-1", "c-4294967296", "d-1"] {
        assert_eq!(ordinal("c", pod), None, "{pod}");
    }
    assert_eq!(ordinal("c-1", "c-1-2"), Some(Ordinal(2)));
    assert_eq!(ordinal_of_claim("c", "c-1"), None);
}

#[test]
fn a_template_text_of_another_form_is_none() {
    for text in [
        "",
        "3.6.16",
        "3.6.16-",
        "3.6.16-ab",
        "3.6.16-00000000000000AB",
        "3.6.16-+0000000000000ab",
        "3.6-00000000000000ab",
        "v3.6.16-00000000000000ab",
        "3.6.16-rc.1-00000000000000ab",
        "3.6.16-00000000000000ab ",
    ] {
        assert_eq!(template_of(text), None, "{text}");
    }
    let template = Template { version: Version::new(6, 16), revision: 0xab };
    assert_eq!(template_text(&template), "3.6.16-00000000000000ab");
}

#[test]
fn the_selector_is_that_of_the_pods() {
    assert_eq!(
        selector_text(plain().name()),
        "app.kubernetes.io/component=member,app.kubernetes.io/instance=c,\
         app.kubernetes.io/managed-by=gatehouse,app.kubernetes.io/name=etcd"
    );
    for role in [Role::Voter, Role::Learner] {
        assert_eq!(role_of(role_text(role)), Some(role));
    }
    assert_eq!(role_of("Voter"), None);
}

proptest! {
    #![proptest_config(crate::properties::config())]

    #[test]
    fn what_is_written_reads_back(minor: u64, patch: u64, revision: u64, number: u32, id: u64) {
        let template = Template { version: Version::new(minor, patch), revision };
        prop_assert_eq!(template_of(&template_text(&template)), Some(template));
        let at = Ordinal(number);
        prop_assert_eq!(ordinal("c", &member("c", at)), Some(at));
        prop_assert_eq!(ordinal_of_claim("c", &claim("c", at)), Some(at));
        prop_assert_eq!(plain().ordinal_of(&plain().peer_url(at)), Some(at));
        prop_assert_eq!(hexadecimal(&member_id_text(MemberId(id))), Some(id));
        prop_assert_eq!(hexadecimal(&cluster_id_text(ClusterId(id))), Some(id));
    }
}
