import { requireNetwork } from '@purser/protocol'
import type { Chains } from '../chain/port.ts'
import type { Clock } from '../platform/clock.ts'
import type { Environment } from '../platform/ctx.ts'
import type { Log } from '../platform/log.ts'
import type { Outbound } from '../platform/outbound.ts'
import type { Random } from '../platform/random.ts'
import { offRampAdapters, type PartnerAccounts, routingAdapters } from './adapters.ts'
import type { OffRamp, OffRampAdapterDeps, OffRampsPort } from './offramp/port.ts'
import { chooseRoute } from './routing/choose.ts'
import type { RoutingAdapterDeps, RoutingPartner, RoutingPorts } from './routing/port.ts'

export { offRampsWithCustomers, type PartnerAccounts, readPartners } from './adapters.ts'

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
export function openPartners(deps: PartnerDeps, accounts: PartnerAccounts): OffRampsPort & RoutingPorts {
  const offRampDeps = withBalances(deps)
  const offRampOf = (environment: Environment): OffRamp | undefined => {
    for (const adapter of offRampAdapters) {
      const opened = adapter.environment === environment ? adapter.open(offRampDeps, accounts) : undefined
      if (opened !== undefined) return opened
    }
    return undefined
  }
  const routingDeps = withReaders(deps)
  const routingOf = (environment: Environment): Readonly<Record<string, RoutingPartner>> => {
    const opened = routingAdapters.flatMap((adapter) => {
      const partner = adapter.environment === environment ? adapter.open(routingDeps, accounts) : undefined
      return partner === undefined ? [] : [[adapter.name, partner] as const]
    })
    return Object.fromEntries(opened)
  }
  return {
    offRamps: { test: offRampOf('test'), live: offRampOf('live') },
    routingPartners: { test: routingOf('test'), live: routingOf('live') },
    chooseRoute,
  }
}

function withBalances({ chains, ...deps }: PartnerDeps): OffRampAdapterDeps {
  return {
    ...deps,
    async balanceOf(name, token, account) {
      const network = requireNetwork(name)
      return (await chains.on(network).balances([{ token, account }]))[0] ?? 0n
    },
  }
}

function withReaders({ chains, ...deps }: PartnerDeps): RoutingAdapterDeps {
  return {
    ...deps,
    reader: {
      call: (network, ...call) => chains.on(network).agreedCall(...call),
      blockNumber: async (network) => (await chains.on(network).head()).number,
      logs: (network, txHash) => chains.on(network).agreedLogs(txHash),
    },
    deliveries: {
      async numberAtDepth(network, account, call) {
        const { values } = await chains.on(network).stateAt([{ account, call }])
        return values[0]
      },
      refusalOf: (network, call) => chains.on(network).refusalOf({ ...call, value: 0n }),
    },
    findEvent: (network, address, topics) => chains.on(network).findEvent(address, topics),
  }
}
