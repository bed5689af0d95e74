import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.alibaba.nacos.api.exception.NacosException;
import com.alibaba.nacos.api.naming.pojo.Instance;
import com.alibaba.nacos.api.naming.pojo.ListView;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** What every version of the client can do. */
class NamingTest {
    private final String service = Client.unique("svc");

    @Test
    void anInstanceIsReadBackAsRegistered() throws Exception {
        try (Client client = Client.inNewNamespace()) {
            Instance sent = Client.instance(8080, "c1", Map.of("zone", "a", "text", "ä=&+ \"quoted\" 北京"));
            sent.setWeight(2.5);
            client.naming.registerInstance(service, sent);
            Instance got = Client.until(() -> client.naming.getAllInstances(service, false), found -> found.size() == 1, "it is listed").get(0);
            assertEquals(Client.IP, got.getIp());
            assertEquals(8080, got.getPort());
            assertEquals("c1", got.getClusterName());
            assertEquals(2.5, got.getWeight());
            assertEquals(sent.getMetadata(), got.getMetadata());
            assertEquals("DEFAULT_GROUP@@" + service, got.getServiceName());
            assertTrue(got.isHealthy() && got.isEnabled() && got.isEphemeral());
            assertFalse(got.getInstanceId().isEmpty());
        }
    }

    @Test
    void anAcknowledgedRegistrationIsReadAtOnce() throws Exception {
        try (Client client = Client.inNewNamespace(); Client reader = client.another()) {
            for (int port = 1001; port <= 1010; port++) {
                client.naming.registerInstance(service + port, Client.instance(port));
                assertEquals(List.of(port), reader.queried(service + port));
                client.naming.deregisterInstance(service + port, Client.instance(port));
                assertEquals(List.of(), reader.queried(service + port));
            }
        }
    }

    @Test
    void groupsAndClustersSelect() throws Exception {
        try (Client client = Client.inNewNamespace(); Client second = client.another()) {
            client.naming.registerInstance(service, "g1", Client.instance(1001, "c1"));
            second.naming.registerInstance(service, "g1", Client.instance(1002, "c2"));
            second.naming.registerInstance(service, "g2", Client.instance(1003, "c1"));
            assertEquals(List.of(1001, 1002), Client.ports(client.naming.getAllInstances(service, "g1", false)));
            assertEquals(List.of(1002), Client.ports(client.naming.getAllInstances(service, "g1", List.of("c2"), false)));
            assertEquals(List.of(1001, 1002), Client.ports(client.naming.getAllInstances(service, "g1", List.of("c1", "c2"), false)));
            assertEquals(List.of(1003), Client.ports(client.naming.selectInstances(service, "g2", true, false)));
            assertEquals(List.of(), client.naming.selectInstances(service, "g2", false, false));
            assertEquals(1002, client.naming.selectOneHealthyInstance(service, "g1", List.of("c2"), false).getPort());
        }
    }

    @Test
    void anUnknownServiceIsEmpty() throws Exception {
        try (Client client = Client.inNewNamespace()) {
            assertEquals(List.of(), client.naming.getAllInstances(service, false));
            assertEquals(List.of(), client.naming.getAllInstances(service, true));
            // The subscription holds: the first instance comes to its cache.
            client.naming.registerInstance(service, Client.instance(1001));
            Client.until(() -> Client.ports(client.naming.getAllInstances(service, true)), List.of(1001)::equals, "the cache follows");
        }
    }

    @Test
    void aSubscribedQueryFollowsChanges() throws Exception {
        try (Client client = Client.inNewNamespace(); Client reader = client.another()) {
            client.naming.registerInstance(service, Client.instance(1001));
            assertEquals(List.of(1001), Client.ports(reader.naming.getAllInstances(service)));
            client.naming.registerInstance(service, Client.instance(1001, "DEFAULT", Map.of("v", "2")));
            Client.until(() -> reader.naming.getAllInstances(service).get(0).getMetadata().get("v"), "2"::equals, "the change arrives");
            client.naming.deregisterInstance(service, Client.instance(1001));
            Client.until(() -> reader.naming.getAllInstances(service), List::isEmpty, "the removal arrives");
        }
    }

    @Test
    void aListenerIsToldAddedChangedAndRemoved() throws Exception {
        try (Client client = Client.inNewNamespace(); Client second = client.another(); Client reader = client.another()) {
            Client.Told told = new Client.Told();
            client.naming.registerInstance(service, Client.instance(1001));
            reader.naming.subscribe(service, told);
            told.waitForPorts(1001);
            // Clients of HTTP poll every 10 s: changes that each come within 5 s of the one before were pushed.
            long began = System.nanoTime();
            second.naming.registerInstance(service, Client.instance(1002));
            told.waitForPorts(1001, 1002);
            client.naming.registerInstance(service, Client.instance(1001, "DEFAULT", Map.of("v", "2")));
            told.waitFor(last -> last.stream().anyMatch(i -> "2".equals(i.getMetadata().get("v"))), "changed metadata");
            client.naming.deregisterInstance(service, Client.instance(1001));
            told.waitForPorts(1002);
            second.naming.deregisterInstance(service, Client.instance(1002));
            told.waitForPorts();
            long took = (System.nanoTime() - began) / 1_000_000;
            assertTrue(took < 4 * 5_000, "four changes took " + took + " ms");
        }
    }

    @Test
    void aSubscriptionToAClusterIsToldOfThatClusterAlone() throws Exception {
        try (Client client = Client.inNewNamespace(); Client second = client.another(); Client reader = client.another()) {
            Client.Told told = new Client.Told();
            client.naming.registerInstance(service, Client.instance(1001, "c1"));
            reader.naming.subscribe(service, List.of("c1"), told);
            told.waitForPorts(1001);
            second.naming.registerInstance(service, Client.instance(2001, "c2"));
            client.naming.registerInstance(service, Client.instance(1001, "c1", Map.of("v", "2")));
            told.waitFor(last -> "2".equals(last.get(0).getMetadata().get("v")), "changed metadata");
            client.naming.deregisterInstance(service, Client.instance(1001, "c1"));
            told.waitForPorts();
            client.naming.registerInstance(service, Client.instance(1003, "c1"));
            told.waitForPorts(1003);
            assertTrue(told.events.stream().allMatch(event -> event.stream().allMatch(i -> i.getClusterName().equals("c1"))));
        }
    }

    @Test
    void severalClustersAndTheWholeServiceMayBeSubscribedAtOnce() throws Exception {
        try (Client client = Client.inNewNamespace(); Client second = client.another(); Client reader = client.another()) {
            Client.Told one = new Client.Told();
            Client.Told two = new Client.Told();
            Client.Told all = new Client.Told();
            client.naming.registerInstance(service, Client.instance(1001, "c1"));
            reader.naming.subscribe(service, List.of("c1"), one);
            reader.naming.subscribe(service, List.of("c1", "c2"), two);
            reader.naming.subscribe(service, all);
            one.waitForPorts(1001);
            second.naming.registerInstance(service, Client.instance(2001, "c2"));
            two.waitForPorts(1001, 2001);
            all.waitForPorts(1001, 2001);
            second.naming.deregisterInstance(service, Client.instance(2001, "c2"));
            two.waitForPorts(1001);
            second.naming.registerInstance(service, Client.instance(3001, "c3"));
            all.waitForPorts(1001, 3001);
            assertEquals(List.of(1001), Client.ports(two.last()));
            assertEquals(List.of(1001), Client.ports(one.last()));
        }
    }

    @Test
    void anUnsubscribedListenerHearsNothingMore() throws Exception {
        try (Client client = Client.inNewNamespace(); Client reader = client.another(); Client witness = client.another()) {
            Client.Told gone = new Client.Told();
            Client.Told told = new Client.Told();
            client.naming.registerInstance(service, Client.instance(1001));
            reader.naming.subscribe(service, gone);
            witness.naming.subscribe(service, told);
            gone.waitForPorts(1001);
            told.waitForPorts(1001);
            reader.naming.unsubscribe(service, gone);
            int heard = gone.events.size();
            client.naming.registerInstance(service, Client.instance(1002));
            told.waitFor(last -> Client.ports(last).contains(1002), "the change arrives where it is subscribed to");
            assertEquals(heard, gone.events.size());
        }
    }

    @Test
    void aDisabledInstanceIsWithheldUntilItIsEnabled() throws Exception {
        try (Client client = Client.inNewNamespace(); Client reader = client.another()) {
            Client.Told told = new Client.Told();
            client.naming.registerInstance(service, Client.instance(1001));
            reader.naming.subscribe(service, told);
            told.waitForPorts(1001);
            String[] key = {"serviceName", service, "ip", Client.IP, "port", "1001", "ephemeral", "true", "enabled", "false"};
            client.direct("PUT", "/instance", key);
            told.waitForPorts();
            assertEquals(List.of(), reader.queried(service));
            key[key.length - 1] = "true";
            client.direct("PUT", "/instance", key);
            told.waitForPorts(1001);
        }
    }

    @Test
    void whatOthersRegisterByHttpIsToldToo() throws Exception {
        try (Client reader = Client.inNewNamespace()) {
            Client.Told told = new Client.Told();
            reader.naming.subscribe(service, told);
            reader.direct("POST", "/instance", "serviceName", service, "ip", Client.IP, "port", "1001");
            told.waitForPorts(1001);
            reader.direct("DELETE", "/instance", "serviceName", service, "ip", Client.IP, "port", "1001");
            told.waitForPorts();
        }
    }

    @Test
    void theServiceListPages() throws Exception {
        try (Client client = Client.inNewNamespace()) {
            for (String name : List.of("a", "b", "c")) {
                client.naming.registerInstance(name, Client.instance(1001));
            }
            client.naming.registerInstance("d", "g1", Client.instance(1001));
            ListView<String> page = client.naming.getServicesOfServer(1, 2);
            assertEquals(3, page.getCount());
            assertEquals(List.of("a", "b"), page.getData());
            assertEquals(List.of("c"), client.naming.getServicesOfServer(2, 2).getData());
            ListView<String> other = client.naming.getServicesOfServer(1, 10, "g1");
            assertEquals(1, other.getCount());
            assertEquals(List.of("d"), other.getData());
        }
    }

    @Test
    void aPersistentRegistrationIsRefusedClearly() throws Exception {
        try (Client client = Client.inNewNamespace()) {
            Instance persistent = Client.instance(1001);
            persistent.setEphemeral(false);
            NacosException refusal = assertThrows(NacosException.class, () -> client.naming.registerInstance(service, persistent));
            assertNotNull(refusal.getErrMsg());
            assertTrue(refusal.getErrMsg().contains("persistent"), refusal.getErrMsg());
            assertEquals(List.of(), client.queried(service));
            // The client goes on.
            client.naming.registerInstance(service, Client.instance(1002));
            assertEquals(List.of(1002), client.queried(service));
        }
    }

    @Test
    void aClientWithAPasswordWorksThoughNobodyAsks() throws Exception {
        Map<String, String> login = Map.of("username", "somebody", "password", "secret+word & more");
        try (Client client = new Client(Client.HTTP, Client.unique("ns"), login)) {
            Client.Told told = new Client.Told();
            client.naming.subscribe(service, told);
            client.naming.registerInstance(service, Client.instance(1001));
            told.waitForPorts(1001);
        }
    }

    @Test
    void theServerIsUp() throws Exception {
        try (Client client = Client.inNewNamespace()) {
            Client.until(client.naming::getServerStatus, "UP"::equals, "the server is up");
        }
    }

    @Test
    void theDefaultNamespaceIsPublic() throws Exception {
        try (Client client = new Client(""); Client named = new Client("public")) {
            client.naming.registerInstance(service, Client.instance(1001));
            assertEquals(List.of(1001), named.queried(service));
            assertTrue(client.direct("GET", "/instance/list", "serviceName", service).contains("\"port\":1001"));
        }
    }

    @Test
    void theEndOfAClientTakesItsInstances() throws Exception {
        try (Client reader = Client.inNewNamespace()) {
            Client.Told told = new Client.Told();
            reader.naming.subscribe(service, told);
            try (Client client = reader.another()) {
                client.naming.registerInstance(service, Client.instance(1001, "DEFAULT", Map.of(
                        "preserved.heart.beat.interval", "1000", "preserved.heart.beat.timeout", "2000", "preserved.ip.delete.timeout", "3000")));
                told.waitForPorts(1001);
            }
            told.waitForPorts();
        }
    }
}
