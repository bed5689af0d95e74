// One of the programs of the suite crosswise; see there for what it does.
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/nacos-group/nacos-sdk-go/v2/clients"
	"github.com/nacos-group/nacos-sdk-go/v2/common/constant"
	"github.com/nacos-group/nacos-sdk-go/v2/model"
	"github.com/nacos-group/nacos-sdk-go/v2/vo"
)

func number(text string) uint64 {
	value, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	server, namespace, service, own := os.Args[1], os.Args[2], os.Args[3], number(os.Args[4])
	var servers []constant.ServerConfig
	for _, address := range strings.Split(server, ",") {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			log.Fatal(err)
		}
		servers = append(servers, *constant.NewServerConfig(host, number(port)))
	}
	scratch, err := os.MkdirTemp("", "agent-go-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(scratch)
	naming, err := clients.NewNamingClient(vo.NacosClientParam{
		ClientConfig: constant.NewClientConfig(
			constant.WithNamespaceId(namespace),
			constant.WithNotLoadCacheAtStart(true),
			constant.WithLogDir(scratch),
			constant.WithCacheDir(scratch),
			constant.WithLogLevel("error"),
		),
		ServerConfigs: servers,
	})
	if err != nil {
		log.Fatal(err)
	}
	err = naming.Subscribe(&vo.SubscribeParam{ServiceName: service, SubscribeCallback: func(instances []model.Instance, _ error) {
		words := []string{"ports"}
		for _, instance := range instances {
			words = append(words, strconv.FormatUint(instance.Port, 10))
		}
		fmt.Println(strings.Join(words, " "))
	}})
	if err != nil {
		log.Fatal(err)
	}
	done, err := naming.RegisterInstance(vo.RegisterInstanceParam{
		ServiceName: service, Ip: "10.1.2.3", Port: own, Weight: 1, Enable: true, Healthy: true, Ephemeral: true,
	})
	if err != nil || !done {
		log.Fatal(done, err)
	}
	fmt.Println("registered")
	_, _ = io.Copy(io.Discard, os.Stdin)
}
