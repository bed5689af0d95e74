//! Pages.

use serde_json::Value;

use crate::support::server::Server;

/// Case 34, alibaba/nacos#1619, #13218, #13491: odd pages gave an empty list beside a count, an overflow, or everything.
#[track_caller]
fn pages(server: &Server, path: &str, rows: &str) {
    let page = |number: &str, size: &str| server.get(path).params(&[("pageNo", number), ("pageSize", size)]).send();
    let names = |answer: &Value| answer[rows].as_array().unwrap().len();
    let first = page("1", "10").json();
    assert_eq!((names(&first), &first["count"]), (10, &Value::from(25)));
    assert_eq!(names(&page("3", "10").json()), 5);
    let beyond = page("4", "10").json();
    assert_eq!((names(&beyond), &beyond["count"]), (0, &Value::from(25)));
    for (number, size) in [
        ("0", "10"),
        ("-1", "10"),
        ("0", "2147483647"),
        ("-9223372036854775808", "10"),
        ("1", "0"),
        ("1", "-1"),
        ("2147483647", "2147483647"),
        ("9223372036854775807", "9223372036854775807"),
        ("99999999999999999999", "10"),
        ("one", "10"),
        ("1", "ten"),
        ("1.5", "10"),
    ] {
        let answer = page(number, size);
        match answer.status {
            200 => {
                let answer = answer.json();
                assert_eq!(answer["count"], 25, "{number} {size}: {answer}");
                let whole = size.starts_with('2');
                assert!(names(&answer) <= 10 || whole, "{number} {size}: {answer}");
            }
            400 => assert!(answer.text().contains("page"), "{number} {size}: {answer:?}"),
            _ => panic!("{number} {size}: {answer:?}"),
        }
    }
}

fn server() -> Server {
    let server = Server::start();
    for number in 0..25 {
        server.register(&format!("s{number}"), "10.0.0.1", 80, &[]);
    }
    server
}

#[test]
fn no_page_of_the_list_of_services_overflows() {
    pages(&server(), "/service/list", "doms");
}

#[test]
fn no_page_of_the_catalog_overflows() {
    pages(&server(), "/catalog/services", "serviceList");
}
