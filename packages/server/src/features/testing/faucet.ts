import { type Address, formatAmount, type Network } from '@purser/protocol'
import { fail } from './errors.ts'
import type { Ctx } from './ports.ts'

/** The asset that the faucet gives: a token, or the coin of the network, which has no address. */
export interface Funding {
  readonly symbol: string
  readonly decimals: number
  readonly address?: Address
}

interface FundingRequest {
  readonly network: Network
  readonly gift: Funding
  readonly rawAmount: bigint
  /** The faucet's address. */
  readonly account: Address
}

/** Throws `faucet-empty` unless the faucet has that much of the token or coin. */
export async function refuseEmpty(ctx: Ctx, { network, gift, rawAmount, account }: FundingRequest): Promise<void> {
  const chain = ctx.chains.on(network)
  const [holding] = await chain.holdings([{ account, tokens: gift.address === undefined ? [] : [gift.address] }])
  const available = (gift.address === undefined ? holding?.native : holding?.tokens[0]) ?? 0n
  if (available >= rawAmount) return
  const shown = (raw: bigint) => formatAmount(raw, gift.decimals)
  throw fail('faucet-empty', { token: gift.symbol, required: shown(rawAmount), available: shown(available) })
}
