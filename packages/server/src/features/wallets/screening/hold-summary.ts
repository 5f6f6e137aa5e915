import { chainNameOf, formatAmount, networkByName } from '@purser/protocol'
import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import type { Operation } from '../../../platform/operation.ts'
import { ChainName } from '../../chains/index.ts'
import { type Ctx, type Deps, operation } from '../ports.ts'
import { type HoldSummaryRow, listHolds } from './hold-summary-store.ts'

/** Most deposits that one summary reads. */
const rowsMax = 1_000
const assetsMax = 100

/** Returns the money that screening keeps from leaving the caller's managed wallets. */
async function summariseHolds(ctx: Pick<Ctx, 'db' | 'tenant'>): Promise<HoldSummary> {
  const assets = await listHolds(ctx.db, ctx.tenant, { rowsMax, assetsMax })
  const [first] = assets
  const amounts = assets.flatMap((asset) => heldAmount(asset) ?? [])
  return {
    wallets: Number(first?.wallets ?? 0n),
    isWhole: (first?.isWhole ?? true) && amounts.length === assets.length,
    amounts,
  }
}

/** Returns the sum with its symbol and decimals; undefined for a token that this build does not know, such as one of a newer process. */
function heldAmount(asset: HoldSummaryRow): HoldSummary['amounts'][number] | undefined {
  const network = networkByName(asset.network)
  const known = network?.tokens.find(({ address }) => address.toLowerCase() === asset.token)
  if (network === undefined || known === undefined) return undefined
  const { symbol, decimals } = known
  return {
    walletId: HolderId.parse(asset.walletId),
    masterWalletId: id('mwt').nullable().parse(asset.masterWalletId),
    name: asset.name,
    chain: asset.network === asset.walletNetwork ? asset.walletChain : chainNameOf(network),
    tokenSymbol: symbol,
    unscreened: formatAmount(asset.unscreened, decimals),
    frozen: formatAmount(asset.frozen, decimals),
  }
}

const HolderId = z.union([id('mwt'), id('cad')])

const HoldSummary = z.strictObject({
  wallets: z.int().describe('How many managed wallets and child addresses have money on hold.'),
  isWhole: z
    .boolean()
    .meta({ description: 'False if a part is not counted: beyond 1,000 deposits, or in an unknown token.' }),
  amounts: z
    .array(
      z.strictObject({
        walletId: HolderId.describe('The managed wallet or child address.'),
        masterWalletId: id('mwt').nullable().describe('The wallet of a child address; null for a wallet itself.'),
        name: z.string().nullable().describe('Its name; null without one.'),
        chain: ChainName.describe('Where the money is.'),
        tokenSymbol: z.string().describe('Symbol of the token.'),
        unscreened: z.string().describe('On hold until screening has cleared its sender.'),
        frozen: z.string().describe('From a flagged sender.'),
      }),
    )
    .describe('By wallet and token, of the newest wallets first: at most 100.'),
})
type HoldSummary = z.input<typeof HoldSummary>

named({ HoldSummary })

export const holdOperations: readonly Operation<Deps>[] = [
  operation({
    id: 'wallets.holds.summary',
    needs: { role: 'viewer', scope: 'read' },
    method: 'GET',
    path: '/wallet-infra/holds',
    summary: 'Sum the money on hold at all managed wallets.',
    description: 'Money on hold cannot leave: its sender is being screened, or was flagged.',
    output: HoldSummary,
    run: (ctx) => summariseHolds(ctx),
  }),
]
