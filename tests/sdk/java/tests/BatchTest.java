import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class BatchTest {
    private final String service = Client.unique("svc");

    @Test
    void aBatchIsListedAsAWhole() throws Exception {
        try (Client client = Client.inNewNamespace(); Client reader = client.another()) {
            Client.Told told = new Client.Told();
            reader.naming.subscribe(service, told);
            client.naming.batchRegisterInstance(service, Client.GROUP, List.of(
                    Client.instance(1001, "c1", Map.of("v", "1")), Client.instance(1002, "c2"), Client.instance(1003)));
            assertEquals(List.of(1001, 1002, 1003), reader.queried(service));
            told.waitForPorts(1001, 1002, 1003);
        }
    }

    @Test
    void aBatchReplacesWhatTheClientHadRegistered() throws Exception {
        try (Client client = Client.inNewNamespace(); Client other = client.another()) {
            other.naming.registerInstance(service, Client.instance(2001));
            client.naming.registerInstance(service, Client.instance(1001));
            client.naming.batchRegisterInstance(service, Client.GROUP, List.of(Client.instance(1002), Client.instance(1003)));
            assertEquals(List.of(1002, 1003, 2001), client.queried(service));
            client.naming.batchRegisterInstance(service, Client.GROUP, List.of(Client.instance(1003), Client.instance(1004)));
            assertEquals(List.of(1003, 1004, 2001), client.queried(service));
        }
    }

    @Test
    void partOfABatchIsDeregistered() throws Exception {
        try (Client client = Client.inNewNamespace(); Client reader = client.another()) {
            Client.Told told = new Client.Told();
            reader.naming.subscribe(service, told);
            client.naming.batchRegisterInstance(service, Client.GROUP, List.of(Client.instance(1001), Client.instance(1002), Client.instance(1003)));
            told.waitForPorts(1001, 1002, 1003);
            client.naming.batchDeregisterInstance(service, Client.GROUP, List.of(Client.instance(1001), Client.instance(1003)));
            told.waitForPorts(1002);
            assertEquals(List.of(1002), client.queried(service));
        }
    }

    @Test
    void aBatchEndsWithItsClient() throws Exception {
        try (Client reader = Client.inNewNamespace()) {
            Client.Told told = new Client.Told();
            reader.naming.subscribe(service, told);
            try (Client client = reader.another()) {
                client.naming.batchRegisterInstance(service, Client.GROUP, List.of(Client.instance(1001), Client.instance(1002)));
                told.waitForPorts(1001, 1002);
            }
            told.waitForPorts();
        }
    }
}
