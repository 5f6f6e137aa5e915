import { requireNetwork } from '@purser/protocol'
import type { Chains } from '../chain/port.ts'
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import type { Outbound } from '../platform/outbound.ts'
import type { Random } from '../platform/random.ts'
import { createBridge } from './offramp/bridge.ts'
import { type BridgeWebhooksPort, createBridgeWebhooks } from './offramp/bridge-webhook.ts'
import type { OffRampsPort } from './offramp/port.ts'
import { createSandboxOffRamp } from './offramp/sandbox.ts'
import type { PartnerSettings } from './partner-request.ts'
import { type CctpSettings, createCctp } from './routing/cctp.ts'
import { chooseRoute } from './routing/choose.ts'
import { createLifi } from './routing/lifi.ts'
import type { ChainReader, DeliveryReader, RoutingPartners, RoutingPorts } from './routing/port.ts'
import { createRelay } from './routing/relay.ts'
import { createSandboxRouting, type FindEvent, type SandboxContracts } from './routing/sandbox.ts'

/** The partners that the operator has an account with. */
export interface PartnerAccounts {
  readonly bridge?: PartnerSettings & { readonly webhookPublicKey: string | undefined }
  readonly cctp?: CctpSettings
  readonly relay?: PartnerSettings
  readonly lifi?: PartnerSettings
  readonly sandbox?: SandboxContracts
}

/** Circle's service for mainnets needs no API key. */
const cctpDefault: CctpSettings = { baseUrl: 'https://iris-api.circle.com' }

interface PartnerDeps {
  readonly outbound: Outbound
  readonly log: Log
  readonly clock: Clock
  readonly chains: Chains
  readonly random: Random
}

/**
 * Opens the configured partners. The test environment always uses the sandbox and never a real partner, because a test key must not move real
 * money.
 */
export function openPartners(
  deps: PartnerDeps,
  accounts: PartnerAccounts,
): OffRampsPort & BridgeWebhooksPort & RoutingPorts {
  const { outbound, log, clock, chains } = deps
  const { bridge } = accounts
  const sandbox = createSandboxOffRamp({
    clock,
    async balanceOf(name, token, account) {
      const network = requireNetwork(name)
      return (await chains.on(network).balances([{ token, account }]))[0] ?? 0n
    },
  })
  const publicKey = bridge?.webhookPublicKey
  return {
    offRamps: { test: sandbox, live: bridge === undefined ? undefined : createBridge({ outbound, log }, bridge) },
    bridgeWebhooks: publicKey === undefined ? undefined : createBridgeWebhooks(publicKey),
    routingPartners: openRouting(deps, accounts),
    chooseRoute,
  }
}

function openRouting(
  deps: PartnerDeps,
  { cctp = cctpDefault, relay, lifi, sandbox }: PartnerAccounts,
): RoutingPartners {
  const { chains } = deps
  const reader: ChainReader = {
    call: (network, to, data) => chains.on(network).call(to, data),
    blockNumber: async (network) => (await chains.on(network).head()).number,
    logs: async (network, txHash) => (await chains.on(network).receipt(txHash))?.logs,
  }
  const deliveries: DeliveryReader = {
    async numberAtDepth(network, account, call) {
      const { values } = await chains.on(network).stateAt([{ account, call }])
      return values[0]
    },
    refusalOf: (network, call) => chains.on(network).refusalOf({ ...call, value: 0n }),
  }
  const findEvent: FindEvent = (network, address, topics) => chains.on(network).findEvent(address, topics)
  return {
    test: sandbox === undefined ? {} : { sandbox: createSandboxRouting({ ...deps, reader, findEvent }, sandbox) },
    live: {
      cctp: createCctp({ ...deps, reader, deliveries }, cctp),
      ...(relay === undefined ? {} : { relay: createRelay(deps, relay) }),
      ...(lifi === undefined ? {} : { lifi: createLifi(deps, lifi) }),
    },
  }
}
