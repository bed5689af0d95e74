import java.util.List;
import org.junit.jupiter.api.Test;

/** The end of a subscription as the server sees it. Clients of HTTP only stop asking; 2.0.4 takes group and service for each other. */
class UnsubscribeTest {
    private final String service = Client.unique("svc");

    private void waitForSubscribers(Client client, int count) throws Exception {
        String wanted = "\"count\":" + count;
        Client.until(() -> client.direct("GET", "/service/subscribers", "serviceName", service), list -> list.contains(wanted), wanted);
    }

    @Test
    void theServerForgetsASubscriberThatUnsubscribes() throws Exception {
        try (Client client = Client.inNewNamespace(); Client other = client.another()) {
            Client.Told told = new Client.Told();
            Client.Told stays = new Client.Told();
            client.naming.subscribe(service, told);
            other.naming.subscribe(service, stays);
            waitForSubscribers(client, 2);
            client.naming.unsubscribe(service, told);
            waitForSubscribers(client, 1);
            other.naming.unsubscribe(service, stays);
            waitForSubscribers(client, 0);
        }
    }

    @Test
    void aSubscriptionToOtherClustersStays() throws Exception {
        try (Client client = Client.inNewNamespace()) {
            Client.Told told = new Client.Told();
            Client.Told stays = new Client.Told();
            client.naming.subscribe(service, List.of("c1"), told);
            client.naming.subscribe(service, List.of("c2"), stays);
            client.naming.unsubscribe(service, List.of("c1"), told);
            client.naming.registerInstance(service, Client.instance(1001, "c2"));
            stays.waitForPorts(1001);
        }
    }
}
