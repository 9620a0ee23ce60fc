//! What the API server counts of what it is asked, and when it is asked to write nothing any more.
//!
//! Guarantees: nothing is asked of the operator, whose own page costs it time that would be measured with the rest.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use kube::Client;

/// Nothing is written any more where nothing was written for so long: longer than a status waits that differs in numbers.
pub const REST: Duration = Duration::from_secs(3);

/// A call, as the API server counts it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    verb: String,
    group: String,
    /// With the subresource.
    resource: String,
}

impl Call {
    /// That of a line of the API server's page.
    fn of(line: &str) -> Option<Self> {
        let line = line.strip_prefix("apiserver_request_total{")?;
        let label = |name: &str| {
            let (_, rest) = line.split_once(&format!(",{name}=\""))?;
            rest.split_once('"').map(|(value, _)| value.to_owned())
        };
        let mut resource = label("resource").filter(|resource| !resource.is_empty())?;
        let subresource = label("subresource").filter(|subresource| !subresource.is_empty());
        resource.extend(subresource.into_iter().flat_map(|name| ["/".to_owned(), name]));
        Some(Self { verb: label("verb")?, group: label("group").unwrap_or_default(), resource })
    }

    /// Whether it is a write of the operator. The controllers of Kubernetes put what the operator patches, and publish
    /// their events in the older group.
    fn is_of_operator(&self) -> bool {
        let resource = self.resource.split('/').next().unwrap_or_default();
        match self.verb.as_str() {
            "PATCH" | "APPLY" => {
                ["tdsets", "deployments", "services", "horizontalpodautoscalers"].contains(&resource)
            }
            "POST" => (self.group.as_str(), resource) == ("events.k8s.io", "events"),
            _ => false,
        }
    }

    /// Whether it is a write of the controllers of Kubernetes that a count leads to. Their events are held back, and go on
    /// for minutes.
    fn is_of_controllers(&self) -> bool {
        let is_write = ["POST", "PUT", "PATCH", "APPLY", "DELETE"].contains(&self.verb.as_str());
        let resource = self.resource.split('/').next().unwrap_or_default();
        is_write && (["pods", "replicasets"].contains(&resource) || self.resource == "deployments/status")
    }
}

impl fmt::Display for Call {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.verb, self.resource)?;
        if self.resource == "events" && self.group.is_empty() {
            formatter.write_str(" of the older group")?;
        }
        Ok(())
    }
}

/// How many calls there were of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls(BTreeMap<Call, u64>);

impl Calls {
    /// Those that the API server has answered so far, of all clients; without watches, which are counted as they end, and
    /// without leases, which are renewed all the time.
    pub async fn of(client: &Client) -> Self {
        let request = hyper::Request::get("/metrics").body(Vec::new()).expect("a request");
        let page = client.request_text(request).await.expect("the API server shows its metrics");
        let mut calls = BTreeMap::<_, u64>::new();
        for line in page.lines() {
            let Some(call) = Call::of(line) else { continue };
            let number = line.rsplit_once(' ').and_then(|(_, number)| number.parse::<u64>().ok());
            if call.verb != "WATCH" && call.resource != "leases" {
                *calls.entry(call).or_default() += number.unwrap_or_default();
            }
        }
        Self(calls)
    }

    /// What came since then.
    pub fn since(&self, before: &Self) -> Self {
        let since = |(call, sum): (&Call, &u64)| {
            let came = sum - before.0.get(call).copied().unwrap_or_default();
            (came > 0).then(|| (call.clone(), came))
        };
        Self(self.0.iter().filter_map(since).collect())
    }

    /// Those that the operator writes by.
    pub fn of_operator(&self) -> u64 {
        self.0.iter().filter(|(call, _)| call.is_of_operator()).map(|(_, sum)| sum).sum()
    }

    /// All of them.
    pub fn all(&self) -> u64 {
        self.0.values().sum()
    }

    /// Each kind by its name.
    pub fn named(&self) -> impl Iterator<Item = (String, u64)> {
        self.0.iter().map(|(call, sum)| (call.to_string(), *sum))
    }

    /// Only the writes of the operator, and those of others that they lead to.
    fn writes(mut self) -> Self {
        self.0.retain(|call, _| call.is_of_operator() || call.is_of_controllers());
        self
    }
}

impl fmt::Display for Calls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<_> = self.named().map(|(name, sum)| format!("{sum} {name}")).collect();
        formatter.write_str(&named.join(", "))
    }
}

/// Waits until nothing was written for [`REST`], as far as the operator writes it or a count leads to it.
pub async fn rest(client: &Client, patience: Duration) {
    let begun = Instant::now();
    let (mut calls, mut since) = (Calls::of(client).await.writes(), begun);
    while since.elapsed() < REST {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = Calls::of(client).await.writes();
        if now != calls {
            let came = now.since(&calls);
            assert!(
                begun.elapsed() < patience,
                "after {patience:?} there are still writes, in a second: {came}"
            );
            (calls, since) = (now, Instant::now());
        }
    }
}
