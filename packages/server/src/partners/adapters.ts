import { bridge } from './offramp/bridge.ts'
import { sandboxOffRamp } from './offramp/sandbox.ts'
import { cctp } from './routing/cctp.ts'
import { lifi } from './routing/lifi.ts'
import { relay } from './routing/relay.ts'
import { sandbox } from './routing/sandbox.ts'
import type { SettingsReader } from './settings.ts'

/** The partners that swap and bridge, in the order in which they are considered for a route. A new one is a file and its line here. */
export const routingAdapters = [relay, cctp, lifi, sandbox] as const

/** The partners that pay out to banks. Of those that are configured, the first of an environment is used. A new one is a file and its line here. */
export const offRampAdapters = [bridge, sandboxOffRamp] as const

type Adapter = (typeof routingAdapters | typeof offRampAdapters)[number]

/** The account types of several adapters as one: the members of all of them. */
type AccountsOf<A> = (
  A extends { readAccount(reader: SettingsReader): infer Account }
    ? (account: Account) => void
    : never
) extends (all: infer All) => void
  ? All
  : never

/** The deployment's accounts at its partners. A partner without an account is unavailable: operations that need it return 503 `partner-unavailable`. */
export type PartnerAccounts = AccountsOf<Adapter>

/** Reads the partners' settings and adds every fault. */
export function readPartners(reader: SettingsReader): PartnerAccounts {
  let accounts: PartnerAccounts = {}
  for (const adapter of [...offRampAdapters, ...routingAdapters])
    accounts = { ...accounts, ...adapter.readAccount(reader) }
  return accounts
}

/** The off-ramps at which each organisation is a customer of its own. */
export const offRampsWithCustomers: readonly string[] = offRampAdapters
  .filter(({ hasCustomers }) => hasCustomers)
  .map(({ name }) => name)
