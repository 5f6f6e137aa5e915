import type { DiscoveredResources } from '../facilitator.ts'
import type { Balance } from '../managed-wallets.ts'
import type { PayingFetchOptions } from '../pay/options.ts'
import type { WalletFetchOptions } from '../pay/wallet.ts'

/** The options of the tools, in addition to those of the paying fetch. */
export interface ToolOptions {
  /** The most characters of a seller's body, or of a list, in a result. Default: 10,000. */
  readonly charactersMax?: number | undefined
  /** Most milliseconds that `pay_and_fetch` may take. Default: 60,000. */
  readonly timeoutMs?: number | undefined
  /** Adds the tool `get_balance` with this function, such as `() => purser.wallets.master.balances(id)`. */
  readonly balances?: (() => Promise<readonly Balance[]>) | undefined
  /** Adds the tool `discover` with this source of paid resources, such as `purser.facilitator.resources`. */
  readonly resources?: ((query: { limit: number; offset: number }) => Promise<DiscoveredResources>) | undefined
}

/** The options of `createPayingFetch`, with a signer or a managed wallet, and those of the tools. */
export type PayingToolsOptions = (PayingFetchOptions | WalletFetchOptions) & ToolOptions
