import { type Address, type Chain, formatAmount, type Network } from '@purser/protocol'
import { z } from 'zod'
import type { ByoWalletId, MasterWalletId } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import { ChainName } from '../../chains/index.ts'
import { requireChildAddress } from '../children/children.ts'
import type { ChildAddressParams } from '../children/schema.ts'
import { fail } from '../errors.ts'
import { requireMasterWallet } from '../managed/managed.ts'
import type { Ctx } from '../ports.ts'
import { findByoWallet, networkOf } from '../store.ts'

/** An account and the tokens that it was created for. */
interface Holder {
  readonly address: Address
  readonly chain: Chain
  readonly network: string
  readonly supportedTokens: readonly string[]
}

export async function balancesOfMaster(ctx: Ctx, walletId: MasterWalletId): Promise<Balance[]> {
  return balancesOf(ctx, await requireMasterWallet(ctx, walletId))
}

export async function balancesOfChild(ctx: Ctx, params: z.output<typeof ChildAddressParams>): Promise<Balance[]> {
  const { address } = await requireChildAddress(ctx, params)
  return balancesOf(ctx, { ...(await requireMasterWallet(ctx, params.id)), address })
}

export async function balancesOfByo(ctx: Ctx, walletId: ByoWalletId): Promise<Balance[]> {
  const wallet = await findByoWallet(ctx.db, ctx.tenant, walletId)
  if (wallet === undefined) throw fail('wallet-not-found')
  return balancesOf(ctx, wallet)
}

/** The native coin first, if the network has one, then the wallet's tokens in the wallet's order. */
async function balancesOf(ctx: Ctx, holder: Holder): Promise<Balance[]> {
  const network = networkOf(holder)
  const holding = await ctx.readHolding(network, holder.address)
  const native =
    network.nativeCoin === null || holding.native === undefined
      ? []
      : [balance(holder, network.nativeCoin, holding.native)]
  return [
    ...native,
    ...holder.supportedTokens.flatMap((symbol) => tokenBalance(holder, network, symbol, holding.tokens)),
  ]
}

function tokenBalance(holder: Holder, network: Network, symbol: string, rawAmounts: readonly bigint[]): Balance[] {
  const index = network.tokens.findIndex((token) => token.symbol === symbol)
  const [token, raw] = [network.tokens[index], rawAmounts[index]]
  return token === undefined || raw === undefined ? [] : [balance(holder, token, raw)]
}

function balance(
  { chain }: Holder,
  { symbol, decimals }: { readonly symbol: string; readonly decimals: number },
  raw: bigint,
): Balance {
  return { tokenSymbol: symbol, formattedBalance: formatAmount(raw, decimals), rawBalance: raw.toString(), chain }
}

/** Balance of one token, or of the native coin. */
export const Balance = z.strictObject({
  tokenSymbol: z.string().describe('Symbol of the token or of the native coin.'),
  formattedBalance: z.string().meta({ description: 'Decimal amount.', example: '12.5' }),
  rawBalance: z.string().meta({ description: 'Integer in the smallest unit.', example: '12500000' }),
  chain: ChainName,
})
export type Balance = z.input<typeof Balance>

named({ Balance })
