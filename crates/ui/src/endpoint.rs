//! Metrics for Prometheus: OpenMetrics' text format, over HTTP.
//!
//! Any client that reaches the port can read them, but change nothing.

use std::fmt;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use tiny_http::{Header, Method, Response};

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A server of /metrics. Ends when it is dropped.
pub struct Endpoint {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
    http: Arc<tiny_http::Server>,
    thread: Option<JoinHandle<()>>,
}

impl Endpoint {
    pub fn serve(address: SocketAddr, registry: Registry) -> anyhow::Result<Endpoint> {
        let listener = TcpListener::bind(address).with_context(|| {
            format!("cannot listen at {address} (--metrics=ADDRESS:PORT sets another one)")
        })?;
        let address = listener.local_addr()?;
        let http =
            tiny_http::Server::from_listener(listener, None).map_err(anyhow::Error::from_boxed)?;
        let (http, ended) = (Arc::new(http), Arc::new(AtomicBool::new(false)));
        let (server, asked) = (http.clone(), ended.clone());
        let thread = std::thread::Builder::new().name("metrics".into()).spawn(move || {
            while !asked.load(Relaxed) {
                // An error concerns one connection, or is temporary.
                match server.recv_timeout(Duration::from_secs(1)) {
                    Ok(Some(request)) => answer(request, &registry),
                    Ok(None) => {}
                    Err(_) => std::thread::sleep(Duration::from_millis(100)),
                }
            }
        })?;
        Ok(Endpoint { address, ended, http, thread: Some(thread) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.ended.store(true, Relaxed);
        self.http.unblock();
        self.thread.take().map(JoinHandle::join);
    }
}

/// Parse `[ADDRESS:]PORT`. The address defaults to 127.0.0.1.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse::<u16>() {
        return Ok(SocketAddr::new(IpAddr::from([127, 0, 0, 1]), port));
    }
    text.parse().map_err(|_| "expected PORT or ADDRESS:PORT, such as 9754 or 127.0.0.1:9754".into())
}

/// Return all metrics as text.
pub fn text(registry: &Registry) -> Result<String, fmt::Error> {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, registry)?;
    Ok(text)
}

fn answer(request: tiny_http::Request, registry: &Registry) {
    let path = request.url().split('?').next().unwrap_or_default();
    let (code, kind, text) = match (request.method(), path) {
        (Method::Get | Method::Head, "/metrics") => match text(registry) {
            Ok(text) => (200, CONTENT_TYPE, text),
            Err(e) => (500, "text/plain", format!("{e}\n")),
        },
        (Method::Get | Method::Head, "/") => {
            (200, "text/plain", "lissom: see /metrics\n".to_string())
        }
        (Method::Get | Method::Head, _) => (404, "text/plain", "use /metrics\n".to_string()),
        _ => (405, "text/plain", "use GET or HEAD\n".to_string()),
    };
    let header = Header::from_bytes("Content-Type", kind).expect("ASCII");
    // Ignore an error: the client has closed its connection.
    let _ = request.respond(Response::from_string(text).with_status_code(code).with_header(header));
}

/// Name without `lissom_`, help text and unit of a metric.
pub struct Name<'a>(pub &'a str, pub &'a str, pub Option<&'a Unit>);

/// Labels of a row.
pub trait Labelled {
    fn labels(&self) -> &[(&'static str, String)];
}

/// Encode a metric, with a value for each row that has one.
pub fn each<M: EncodeMetric, R: Labelled>(
    encoder: &mut DescriptorEncoder,
    Name(name, help, unit): Name,
    kind: MetricType,
    rows: &[R],
    value: impl Fn(&R) -> Option<M>,
) -> fmt::Result {
    let name = format!("lissom_{name}");
    let mut metric = encoder.encode_descriptor(&name, help, unit, kind)?;
    for row in rows {
        if let Some(value) = value(row) {
            value.encode(metric.encode_family(&row.labels())?)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("text");
        answer
    }

    #[test]
    fn addresses() {
        assert_eq!(address("9754"), Ok(SocketAddr::from(([127, 0, 0, 1], 9754))));
        assert!(address("[::1]:80").is_ok_and(|a| a.is_ipv6()));
        assert!(address("everywhere").is_err());
    }

    #[test]
    fn what_it_answers() {
        let server = Endpoint::serve(address("0").expect("a port"), Registry::default())
            .expect("a free port");
        let get = |path: &str| {
            let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            ask(server.address(), &request)
        };
        let answer = get("/metrics");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(CONTENT_TYPE), "{answer}");
        assert!(answer.contains("# EOF"), "{answer}");
        assert!(get("/other").starts_with("HTTP/1.1 404"));
        let post = ask(
            server.address(),
            "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        );
        assert!(post.starts_with("HTTP/1.1 405"), "{post}");
    }
}
