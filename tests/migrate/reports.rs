//! What a run reports that could not be begun.

use std::fs;

use kit::databases::Servers;

use super::bed::Bed;

/// Something that is wrong before a run begins.
type Wrong = fn(&Bed<'_>);

pub fn what_keeps_a_run_from_being_begun_is_reported(servers: &Servers) {
    let cases: [(Wrong, &str); 6] = [
        (|bed| fs::write(bed.path("credentials/username"), "").unwrap(), "needs a user"),
        (|bed| fs::write(bed.path("credentials/password"), b"secret\xff").unwrap(), "is not UTF-8"),
        (|bed| fs::remove_file(bed.path("credentials/password")).unwrap(), "credentials/password"),
        (|bed| fs::write(bed.path("tls/tls.crt"), "secret").unwrap(), "tls.crt and tls.key"),
        (|bed| fs::write(bed.path("r1.json"), r#"{"version": 7, "run": {"uid": "r1"}}"#).unwrap(), "r1.json"),
        (|bed| fs::remove_file(bed.path("scripts/001.sql")).unwrap(), "script 001"),
    ];
    for (change, said) in cases {
        let mut bed = Bed::new(&servers.postgres);
        bed.script("001", "CREATE TABLE a ()");
        fs::create_dir(bed.path("tls")).unwrap();
        let (mut command, report) = bed.command("r1");
        command.arg("--tls").arg(bed.path("tls"));
        change(&bed);
        let ended = bed.ended(command, &report);
        assert_eq!(ended.code, Some(20), "{ended:?}");
        let error = &ended.result["lastError"];
        assert_eq!((&ended.result["outcome"], &error["class"]), (&"Failed".into(), &"Configuration".into()));
        assert_eq!(ended.result["run"], "r1");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(said) && !message.contains("secret"), "{message}");
        assert!(ended.stderr.contains(message), "{ended:?}");
    }
}
