import { networkByName } from '@purser/protocol'
import type { Chains } from '../chain/port.ts'
import type { Clock } from '../platform/clock.ts'
import type { Ports } from '../platform/ctx.ts'
import type { Log } from '../platform/log.ts'
import type { Outbound } from '../platform/outbound.ts'
import { type BridgeSettings, createBridge } from './offramp/bridge.ts'
import { createBridgeWebhooks } from './offramp/bridge-webhook.ts'
import { createSandboxOffRamp } from './offramp/sandbox.ts'

/** The partners that the operator has an account with. */
export interface PartnerAccounts {
  readonly bridge?: BridgeSettings & { readonly webhookPublicKey: string | undefined }
}

interface PartnerDeps {
  readonly outbound: Outbound
  readonly log: Log
  readonly clock: Clock
  readonly chains: Chains
}

/** Opens what is configured. The test environment always has the sandbox and never a real partner: a test key moves no real money. */
export function openPartners(
  { outbound, log, clock, chains }: PartnerDeps,
  { bridge }: PartnerAccounts,
): Pick<Ports, 'offRamps' | 'bridgeWebhooks'> {
  const sandbox = createSandboxOffRamp({
    clock,
    async balanceOf(name, token, account) {
      const network = networkByName(name)
      if (network === undefined) throw new Error('a sandbox payout names a network that there is not')
      return (await chains.on(network).balances([{ token, account }]))[0] ?? 0n
    },
  })
  const publicKey = bridge?.webhookPublicKey
  return {
    offRamps: { test: sandbox, live: bridge === undefined ? undefined : createBridge({ outbound, log }, bridge) },
    bridgeWebhooks: publicKey === undefined ? undefined : createBridgeWebhooks(publicKey),
  }
}
