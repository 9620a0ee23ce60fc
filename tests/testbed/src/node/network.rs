//! The addresses of one cluster, and the cable between its network and the machine's.
//!
//! Every cluster has a block of 198.18.0.0/15, the range that RFC 2544 sets aside for tests and no router forwards:
//! pods, Services, and a pair of addresses for the cable. The machine has a route to the whole block, so pods
//! and Services answer to it as well. There is no way from a cluster to other networks.
//!
//! Which blocks are taken follows from the names of the cables' ends; making an interface is atomic, so two
//! clusters never get one block.

use std::{net::Ipv4Addr, path::Path, process::Command};

use crate::{Error, command::run, node::namespaces::Entrance};

const RANGE: u32 = u32::from_be_bytes([198, 18, 0, 0]);
const BLOCKS: u32 = 32;
const BLOCK_BITS: u32 = 12;
/// Of a block: a quarter for pods, a quarter for Services, the last four addresses for the cable.
const QUARTER_BITS: u32 = 10;

/// The addresses of one cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block(u32);

impl Block {
    fn at(self, offset: u32) -> Ipv4Addr {
        Ipv4Addr::from(RANGE + (self.0 << BLOCK_BITS) + offset)
    }

    fn all(self) -> String {
        format!("{}/{}", self.at(0), 32 - BLOCK_BITS)
    }

    /// The range of the pods.
    pub(crate) fn pods(self) -> String {
        format!("{}/{}", self.at(0), 32 - QUARTER_BITS)
    }

    /// The range of the Services.
    pub(crate) fn services(self) -> String {
        format!("{}/{}", self.at(1 << QUARTER_BITS), 32 - QUARTER_BITS)
    }

    /// The Service `kubernetes` of the API server: the first address of its range.
    pub(crate) fn kubernetes_service(self) -> Ipv4Addr {
        self.at((1 << QUARTER_BITS) + 1)
    }

    /// The machine's end of the cable.
    pub(crate) fn machine(self) -> Ipv4Addr {
        self.at((1 << BLOCK_BITS) - 3)
    }

    /// The cluster's end of the cable, which is also the address of the node.
    pub(crate) fn node(self) -> Ipv4Addr {
        self.at((1 << BLOCK_BITS) - 2)
    }

    fn interface(self) -> String {
        format!("testbed{}", self.0)
    }
}

/// Plugs a network into the machine's, on a block that is free.
pub(crate) fn connect(entrance: Entrance, name: &str) -> Result<Block, Error> {
    let holder = entrance.process().to_string();
    for block in (0..BLOCKS).map(Block) {
        let interface = block.interface();
        if is_routed(block)? {
            continue;
        }
        let cable = ["link", "add", &interface, "type", "veth", "peer", "name", "eth0", "netns", &holder];
        match ip(&cable) {
            Err(Error::Command { stderr, .. }) if stderr.contains("File exists") => {}
            Err(error) => return Err(error),
            Ok(_) => {
                address(entrance, block, name)?;
                return Ok(block);
            }
        }
    }
    Err(Error::NoFreeBlock)
}

/// Whether the machine has a route into the block, of another cluster or of anything else.
fn is_routed(block: Block) -> Result<bool, Error> {
    let all = block.all();
    let within = ip(&["-4", "route", "show", "table", "all", "root", &all])?;
    let around = ip(&["-4", "route", "show", "table", "all", "match", &all])?;
    Ok(within.lines().chain(around.lines()).any(|route| !route.starts_with("default")))
}

fn address(entrance: Entrance, block: Block, name: &str) -> Result<(), Error> {
    let (interface, machine, node) = (block.interface(), block.machine(), block.node());
    let (machine, node) = (machine.to_string(), node.to_string());
    ip(&["link", "set", &interface, "alias", &format!("testbed {name}")])?;
    ip(&["address", "add", &format!("{machine}/30"), "dev", &interface])?;
    ip(&["link", "set", &interface, "up"])?;
    let inside = |arguments: &[&str]| run(entrance.network(Path::new("ip")).args(arguments));
    inside(&["link", "set", "lo", "up"])?;
    inside(&["address", "add", &format!("{node}/30"), "dev", "eth0"])?;
    inside(&["link", "set", "eth0", "up"])?;
    inside(&["route", "add", "default", "via", &machine])?;
    let forward = "echo 1 >/proc/sys/net/ipv4/ip_forward";
    run(entrance.network(Path::new("sh")).args(["-c", forward]))?;
    ip(&["route", "add", &block.all(), "via", &node, "dev", &interface])?;
    Ok(())
}

fn ip(arguments: &[&str]) -> Result<String, Error> {
    run(Command::new("ip").args(arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_their_parts_do_not_overlap() {
        let block = Block(1);
        assert_eq!(block.all(), "198.18.16.0/20");
        assert_eq!(block.pods(), "198.18.16.0/22");
        assert_eq!(block.services(), "198.18.20.0/22");
        assert_eq!(block.kubernetes_service().to_string(), "198.18.20.1");
        assert_eq!(block.machine().to_string(), "198.18.31.253");
        assert_eq!(block.node().to_string(), "198.18.31.254");
        assert_eq!(Block(BLOCKS - 1).all(), "198.19.240.0/20");
    }
}
