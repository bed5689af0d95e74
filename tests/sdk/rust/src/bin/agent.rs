//! One of the programs of the suite `crosswise`; see there for what it does.

use std::{
    error::Error,
    io::{self, Read},
    sync::Arc,
};

use nomina_sdk_rust::{Told, connect, instance, ports, props};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [server, namespace, service, port] = arguments.as_slice() else {
        return Err("agent SERVER NAMESPACE SERVICE PORT".into());
    };
    let naming = connect(props(server, namespace)).await?;
    let told = Told::also(|instances| {
        let ports: Vec<String> = ports(instances).iter().map(ToString::to_string).collect();
        println!("ports {}", ports.join(" "));
    });
    naming.subscribe(service.clone(), None, Vec::new(), Arc::new(told)).await?;
    naming.register_instance(service.clone(), None, instance(port.parse()?, "DEFAULT")).await?;
    println!("registered");
    tokio::task::spawn_blocking(|| io::stdin().read_to_end(&mut Vec::new())).await??;
    std::process::exit(0);
}
