import { type Address, formatAmount, type Network, type TokenInfo } from '@purser/protocol'
import { fail } from './errors.ts'
import type { Ctx } from './ports.ts'

interface Giving {
  readonly network: Network
  readonly token: TokenInfo
  readonly rawAmount: bigint
  /** The faucet's address. */
  readonly account: Address
}

/** Throws `faucet-empty` unless the faucet has that much of the token. */
export async function refuseEmpty(ctx: Ctx, { network, token, rawAmount, account }: Giving): Promise<void> {
  const [available = 0n] = await ctx.chains.on(network).balances([{ token: token.address, account }])
  if (available >= rawAmount) return
  const shown = (raw: bigint) => formatAmount(raw, token.decimals)
  throw fail('faucet-empty', { token: token.symbol, required: shown(rawAmount), available: shown(available) })
}
