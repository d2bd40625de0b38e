//! A simulated DNS server on loopback that names the KDCs of a domain.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
};

use simple_dns::{
    CLASS, Name, Packet, QTYPE, RCODE, ResourceRecord, TYPE,
    rdata::{A, RData, SRV},
};
use tokio::{net::UdpSocket, task::JoinHandle};

/// A server that ends with the test.
pub struct Dns {
    pub address: SocketAddr,
    /// The first is `dc0` in the domain.
    kdcs: Arc<Mutex<Vec<SocketAddr>>>,
    task: JoinHandle<()>,
}

impl Drop for Dns {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Dns {
    /// A server that names these KDCs of contoso.com.
    pub async fn start(kdcs: &[SocketAddr]) -> Self {
        Self::start_for("contoso.com", kdcs).await
    }

    /// A server that names these KDCs of a domain.
    pub async fn start_for(domain: &'static str, kdcs: &[SocketAddr]) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let (address, kdcs) = (socket.local_addr().unwrap(), Arc::new(Mutex::new(kdcs.to_vec())));
        let named = Arc::clone(&kdcs);
        let task = tokio::spawn(async move {
            let mut query = vec![0; 512];
            while let Ok((length, client)) = socket.recv_from(&mut query).await {
                let answer = answer(&query[..length], domain, &named.lock().unwrap().clone());
                socket.send_to(&answer, client).await.unwrap();
            }
        });
        Self { address, kdcs, task }
    }

    /// From now on it names these KDCs.
    pub fn name(&self, kdcs: &[SocketAddr]) {
        *self.kdcs.lock().unwrap() = kdcs.to_vec();
    }
}

fn answer(query: &[u8], domain: &str, kdcs: &[SocketAddr]) -> Vec<u8> {
    let host = |number: usize| format!("dc{number}.{domain}");
    let asked = Packet::parse(query).unwrap();
    let (name, kind) = (asked.questions[0].qname.to_string(), asked.questions[0].qtype);
    let mut answer = Packet::new_reply(asked.id());
    let record = |data| ResourceRecord::new(Name::new_unchecked("x"), CLASS::IN, 1, data);
    if name == format!("_kerberos._tcp.dc._msdcs.{domain}") && kind == QTYPE::TYPE(TYPE::SRV) {
        let named = kdcs.iter().enumerate().zip(0..).map(|((number, kdc), priority)| {
            let target = Name::new(&host(number)).unwrap().into_owned();
            record(RData::SRV(SRV { priority, weight: 100, port: kdc.port(), target }))
        });
        answer.answers.extend(named);
    } else if let Some(number) = (0..kdcs.len()).find(|number| host(*number) == name) {
        if let (SocketAddr::V4(kdc), QTYPE::TYPE(TYPE::A)) = (kdcs[number], kind) {
            answer.answers.push(record(RData::A(A { address: Ipv4Addr::to_bits(*kdc.ip()) })));
        }
    } else {
        *answer.rcode_mut() = RCODE::NameError;
    }
    answer.build_bytes_vec().unwrap()
}
