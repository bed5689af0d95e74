import org.apache.dubbo.config.ProtocolConfig;
import org.apache.dubbo.config.ServiceConfig;

/** A program that is called, until it is told to end by SIGTERM. */
final class Provider {
    public static void main(String[] arguments) throws Exception {
        String namespace = arguments[0], mode = arguments[1], protocol = arguments[2], greeting = arguments[4];
        ServiceConfig<Greeter> service = new ServiceConfig<>();
        service.setInterface(Greeter.class);
        service.setRef(() -> greeting);
        ProtocolConfig port = new ProtocolConfig(protocol, Integer.parseInt(arguments[3]));
        Settings.begin("greeter", namespace, mode).protocol(port).service(service).start().await();
    }
}
