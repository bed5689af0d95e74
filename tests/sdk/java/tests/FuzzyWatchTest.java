import static org.junit.jupiter.api.Assertions.assertEquals;

import com.alibaba.nacos.api.naming.listener.AbstractFuzzyWatchEventWatcher;
import com.alibaba.nacos.api.naming.listener.FuzzyWatchChangeEvent;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Watches of service names. */
class FuzzyWatchTest {
    private static final class Seen extends AbstractFuzzyWatchEventWatcher {
        final List<String> events = new CopyOnWriteArrayList<>();

        @Override
        public void onEvent(FuzzyWatchChangeEvent event) {
            events.add(event.getChangeType() + " " + event.getGroupName() + " " + event.getServiceName());
        }

        void waitFor(String... wanted) throws Exception {
            Client.until(() -> Set.copyOf(events), Set.of(wanted)::equals, "the events are " + List.of(wanted));
        }
    }

    @Test
    void servicesThatMatchAreToldAsTheyComeAndGo() throws Exception {
        try (Client client = Client.inNewNamespace(); Client watcher = client.another()) {
            client.naming.registerInstance("orders-1", Client.instance(1001));
            client.naming.registerInstance("stock-1", Client.instance(1001));
            Seen seen = new Seen();
            watcher.naming.fuzzyWatch("orders*", Client.GROUP, seen);
            seen.waitFor("ADD_SERVICE DEFAULT_GROUP orders-1");
            client.naming.registerInstance("orders-2", Client.instance(1001));
            client.naming.registerInstance("orders-3", "g1", Client.instance(1001));
            client.naming.registerInstance("stock-2", Client.instance(1001));
            seen.waitFor("ADD_SERVICE DEFAULT_GROUP orders-1", "ADD_SERVICE DEFAULT_GROUP orders-2");
            client.naming.deregisterInstance("orders-1", Client.instance(1001));
            seen.waitFor("ADD_SERVICE DEFAULT_GROUP orders-1", "ADD_SERVICE DEFAULT_GROUP orders-2", "DELETE_SERVICE DEFAULT_GROUP orders-1");
            assertEquals(3, seen.events.size(), () -> "nothing twice: " + seen.events);
        }
    }

    @Test
    void theServiceKeysThatMatchAreReturned() throws Exception {
        try (Client client = Client.inNewNamespace(); Client watcher = client.another()) {
            Set<String> wanted = new TreeSet<>();
            for (int i = 0; i < 25; i++) {
                client.naming.registerInstance("s" + i, "g" + i % 2, Client.instance(1001));
                wanted.add(client.namespace + "@@g" + i % 2 + "@@s" + i);
            }
            Seen seen = new Seen();
            List<String> keys = watcher.naming.fuzzyWatchWithServiceKeys("*", "g*", seen).get(Client.DEADLINE_MS, TimeUnit.MILLISECONDS).getData();
            assertEquals(wanted, new TreeSet<>(keys));
        }
    }

    @Test
    void aWatchOfAGroupIsToldOfAllItsServices() throws Exception {
        try (Client client = Client.inNewNamespace(); Client watcher = client.another()) {
            client.naming.registerInstance("a", "g1", Client.instance(1001));
            client.naming.registerInstance("b", "g2", Client.instance(1001));
            Seen seen = new Seen();
            watcher.naming.fuzzyWatch("g1", seen);
            seen.waitFor("ADD_SERVICE g1 a");
        }
    }

    @Test
    void aCancelledWatchHearsNothingMore() throws Exception {
        try (Client client = Client.inNewNamespace(); Client watcher = client.another()) {
            client.naming.registerInstance("a", Client.instance(1001));
            Seen gone = new Seen();
            Seen seen = new Seen();
            watcher.naming.fuzzyWatch("a*", Client.GROUP, gone);
            watcher.naming.fuzzyWatch("*", Client.GROUP, seen);
            gone.waitFor("ADD_SERVICE DEFAULT_GROUP a");
            seen.waitFor("ADD_SERVICE DEFAULT_GROUP a");
            watcher.naming.cancelFuzzyWatch("a*", Client.GROUP, gone);
            client.naming.registerInstance("aa", Client.instance(1001));
            seen.waitFor("ADD_SERVICE DEFAULT_GROUP a", "ADD_SERVICE DEFAULT_GROUP aa");
            assertEquals(List.of("ADD_SERVICE DEFAULT_GROUP a"), List.copyOf(gone.events));
        }
    }
}
