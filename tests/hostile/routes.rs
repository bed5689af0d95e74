//! The routes of the v1 API with the parameters that each reads.

/// A route, and parameters with which it succeeds if they name something that exists.
pub struct Route {
    pub method: &'static str,
    pub path: &'static str,
    pub valid: &'static [(&'static str, &'static str)],
    /// Parameters that it also reads.
    pub optional: &'static [&'static str],
}

const INSTANCE: &[(&str, &str)] = &[("serviceName", "victim"), ("ip", "10.0.0.1"), ("port", "80")];
const REGISTRATION: &[&str] = &[
    "namespaceId",
    "groupName",
    "clusterName",
    "cluster",
    "weight",
    "enabled",
    "enable",
    "healthy",
    "ephemeral",
    "metadata",
];

/// The instance API.
pub const INSTANCE_ROUTES: &[Route] = &[
    Route { method: "POST", path: "/instance", valid: INSTANCE, optional: REGISTRATION },
    Route { method: "PUT", path: "/instance", valid: INSTANCE, optional: UPDATE },
    Route { method: "PATCH", path: "/instance", valid: INSTANCE, optional: PATCH },
    Route {
        method: "DELETE",
        path: "/instance",
        valid: INSTANCE,
        optional: &["namespaceId", "groupName", "clusterName", "cluster", "weight", "ephemeral"],
    },
    Route { method: "GET", path: "/instance", valid: INSTANCE, optional: &["namespaceId", "groupName", "clusterName"] },
    Route {
        method: "GET",
        path: "/instance/list",
        valid: &[("serviceName", "victim")],
        optional: &["namespaceId", "groupName", "healthyOnly"],
    },
    Route {
        method: "PUT",
        path: "/instance/beat",
        valid: INSTANCE,
        optional: &["namespaceId", "groupName", "clusterName", "beat"],
    },
    Route { method: "GET", path: "/instance/statuses", valid: &[("key", "public##g@@victim")], optional: &[] },
    Route {
        method: "PUT",
        path: "/instance/metadata/batch",
        valid: &[("serviceName", "victim"), ("metadata", "k=v"), ("instances", "[]")],
        optional: &["namespaceId", "groupName"],
    },
    Route {
        method: "DELETE",
        path: "/instance/metadata/batch",
        valid: &[("serviceName", "victim"), ("metadata", "k=v"), ("instances", "[]")],
        optional: &["namespaceId", "groupName"],
    },
];

const UPDATE: &[&str] =
    &["namespaceId", "groupName", "clusterName", "cluster", "weight", "enabled", "enable", "metadata"];
const PATCH: &[&str] = &["namespaceId", "groupName", "clusterName", "cluster", "weight", "enabled", "metadata"];

/// Every path of the gateway, for walks that know nothing of what is behind it.
pub const PATHS: &[&str] = &[
    "/nacos/v1/ns/instance",
    "/nacos/v1/ns/instance/list",
    "/nacos/v1/ns/instance/beat",
    "/nacos/v1/ns/instance/statuses",
    "/nacos/v1/ns/instance/metadata/batch",
    "/nacos/v1/ns/service",
    "/nacos/v1/ns/service/list",
    "/nacos/v1/ns/service/names",
    "/nacos/v1/ns/service/subscribers",
    "/nacos/v1/ns/service/selector/types",
    "/nacos/v1/ns/catalog/services",
    "/nacos/v1/ns/catalog/instances",
    "/nacos/v1/ns/catalog/service",
    "/nacos/v1/ns/cluster",
    "/nacos/v1/ns/health",
    "/nacos/v1/ns/health/instance",
    "/nacos/v1/ns/health/checkers",
    "/nacos/v1/ns/health/server",
    "/nacos/v1/ns/operator/switches",
    "/nacos/v1/ns/operator/metrics",
    "/nacos/v1/ns/operator/servers",
    "/nacos/v1/ns/operator/push/state",
    "/nacos/v1/ns/ops/switches",
    "/nacos/v1/core/cluster/nodes",
    "/nacos/v1/core/cluster/self",
    "/nacos/v1/core/cluster/simple/nodes",
    "/nacos/v2/core/cluster/node/list",
    "/nacos/v2/core/cluster/node/self",
    "/nacos/serverlist",
    "/nacos/v1/console/namespaces",
    "/nacos/v1/console/server/state",
    "/nacos/v1/console/health/liveness",
    "/nacos/v1/console/health/readiness",
    "/nacos/v1/auth/login",
    "/nacos/v1/auth/users/login",
    "/metrics",
    "/",
    "/nacos",
    "/nacos/",
];

/// Methods that some path knows, and some that none does.
pub const METHODS: &[&str] =
    &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "X"];

/// Every parameter that some route reads.
pub const PARAMETERS: &[&str] = &[
    "serviceName",
    "groupName",
    "namespaceId",
    "clusterName",
    "cluster",
    "clusters",
    "ip",
    "port",
    "weight",
    "enabled",
    "enable",
    "healthy",
    "valid",
    "ephemeral",
    "metadata",
    "beat",
    "instances",
    "consistencyType",
    "key",
    "healthyOnly",
    "clientIP",
    "udpPort",
    "pageNo",
    "pageSize",
    "selector",
    "protectThreshold",
    "expr",
    "withInstances",
    "hasIpCount",
    "instance",
    "serviceNameParam",
    "groupNameParam",
    "checkPort",
    "useInstancePort4Check",
    "healthChecker",
    "entry",
    "value",
    "debug",
    "customNamespaceId",
    "namespaceName",
    "namespaceDesc",
    "namespace",
    "aggregation",
    "onlyStatus",
];
