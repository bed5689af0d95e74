import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.cloud.client.loadbalancer.LoadBalanced;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.client.RestTemplate;

/** A program that calls others by their name. */
@Configuration(proxyBeanMethods = false)
@EnableAutoConfiguration
class Consumer {
    @Bean
    @LoadBalanced
    RestTemplate rest() {
        return new RestTemplate();
    }
}
