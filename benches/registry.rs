//! What the registry core costs: reads, beats, registrations into services of several sizes, and the look at all leases.
//!
//! `cargo bench --bench registry`

#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark that cannot be set up should stop")]

use std::{hint::black_box, sync::Arc, time::Duration};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use nomina::{
    clock::{Clock, Mono},
    registry::{
        ClusterName, Command, InstanceKey, Kind, Limits, Publication, RegistryHandle, ServiceCommand, ServiceKey,
        Settings, Target, Weight, instance::Instance, lease_table::LeaseTable, list::InstanceList, overlay::Overlay,
        select::Query,
    },
    shutdown::Shutdown,
    wire::http_v1::{Frame, list_body},
};
use tokio::runtime::Runtime;

fn service(number: usize) -> ServiceKey {
    Limits::default().service_key("", "", &format!("service-{number:06}")).unwrap()
}

fn key(number: usize) -> InstanceKey {
    let address = format!("10.{}.{}.{}", number >> 16 & 255, number >> 8 & 255, number & 255);
    InstanceKey { endpoint: Limits::default().endpoint(&address, 8080).unwrap(), cluster: ClusterName::default() }
}

/// A registry with `services` services of `size` instances each.
fn filled(runtime: &Runtime, services: usize, size: usize) -> RegistryHandle {
    let _inside = runtime.enter();
    let registry = RegistryHandle::start(Settings::default(), Limits::default(), Clock::start(), &Shutdown::new());
    runtime.block_on(async {
        for number in 0..services {
            for instance in 0..size {
                register(&registry, service(number), key(instance), 1.0).await;
            }
        }
    });
    registry
}

async fn register(registry: &RegistryHandle, service: ServiceKey, key: InstanceKey, weight: f64) {
    let publication = Publication { weight: Weight::new(weight).unwrap(), ..Publication::default() };
    let command = ServiceCommand::Register(key, Kind::Ephemeral, publication);
    registry.apply(Command::Service(service, command)).await.unwrap();
}

fn reads(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let registry = filled(&runtime, 1_000, 10);
    let keys: Vec<_> = (0..1_000).map(service).collect();
    let mut next = (0..1_000).cycle();
    criterion.bench_function("read a snapshot", |bencher| {
        bencher.iter(|| black_box(registry.snapshot(&keys[next.next().unwrap()])));
    });
    let target = Target { endpoint: key(5).endpoint, cluster: None };
    criterion.bench_function("beat by name", |bencher| {
        bencher.iter(|| {
            let snapshot = registry.snapshot(&keys[next.next().unwrap()]);
            registry.beat(snapshot.instances().resolve(&target).unwrap().unwrap());
        });
    });
    let frame = Frame { clusters: "", cache_millis: 10_000, env: "", now: 0 };
    let snapshot = registry.snapshot(&keys[0]);
    criterion.bench_function("v1 list of 10, encoded before", |bencher| {
        bencher.iter(|| black_box(list_body(&keys[0], &snapshot, &Query::default(), &frame)));
    });
    let labelled = Query { labels: [("a".to_owned(), "b".to_owned())].into(), ..Query::default() };
    criterion.bench_function("v1 list of 10, encoded anew", |bencher| {
        bencher.iter(|| black_box(list_body(&keys[0], &snapshot, &labelled, &frame)));
    });
}

fn writes(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let mut group = criterion.benchmark_group("change one instance in a service of");
    for size in [1, 10, 100, 1_000, 10_000] {
        let registry = filled(&runtime, 1, size);
        let mut weights = (1..1_000).cycle();
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| {
                let weight = f64::from(weights.next().unwrap());
                runtime.block_on(register(&registry, service(0), key(size / 2), weight));
            });
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("copy a list with one change, instances");
    for size in [1, 10, 100, 1_000, 10_000] {
        let make = |number| {
            let (publication, overlay) = (Publication::default(), Overlay::default());
            Arc::new(Instance::new(key(number), Kind::Ephemeral, publication, overlay, None, None))
        };
        let mut list = InstanceList::default();
        for number in 0..size {
            list.insert(make(number));
        }
        let one = make(size / 2);
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| {
                let mut next = list.clone();
                next.insert(one.clone());
                next
            });
        });
    }
    group.finish();
}

fn leases(criterion: &mut Criterion) {
    let mut table = LeaseTable::default();
    let runtime = Runtime::new().unwrap();
    let registry = filled(&runtime, 1, 1);
    let held = registry.service(&service(0)).unwrap();
    let instance = held.snapshot().instances().iter().next().unwrap().clone();
    for _ in 0..1_000_000 {
        let lease = table.open(Mono::ZERO).unwrap();
        table.hold(lease, held.clone(), instance.clone(), Some(Duration::from_secs(15)), false);
    }
    criterion.bench_function("look at a million leases", |bencher| {
        bencher.iter(|| black_box(table.due(Mono::from_millis(10_000), Mono::ZERO, true, usize::MAX)));
    });
}

criterion_group!(benches, reads, writes, leases);
criterion_main!(benches);
