import { formatAmount, networkByName } from '@purser/protocol'
import { z } from 'zod'
import { id } from '../../../platform/ids.ts'
import { named } from '../../../platform/named.ts'
import type { Operation } from '../../../platform/operation.ts'
import { ChainName } from '../../chains/index.ts'
import { type Ctx, type Deps, operation } from '../ports.ts'
import { type HeldPlace, listHeldPlaces } from './hold-summary-store.ts'

/** Most deposits that one summary reads. */
const rowsMax = 1_000
const placesMax = 100

/** Returns the money that screening keeps from leaving the caller's managed wallets. */
async function summariseHolds(ctx: Ctx): Promise<HoldSummary> {
  const places = await listHeldPlaces(ctx.db, ctx.tenant, { rowsMax, placesMax })
  const [first] = places
  return {
    wallets: Number(first?.wallets ?? 0n),
    isWhole: first?.isWhole ?? true,
    amounts: places.map(heldAmount),
  }
}

function heldAmount({ walletId, masterWalletId, name, chain, network, token, unscreened, frozen }: HeldPlace) {
  const known = networkByName(network)?.tokens.find(({ address }) => address.toLowerCase() === token)
  if (known === undefined) throw new Error(`money on hold is in ${token} on ${network}, which this build does not know`)
  const { symbol, decimals } = known
  return {
    walletId: HolderId.parse(walletId),
    masterWalletId: id('mwt').nullable().parse(masterWalletId),
    name,
    chain,
    tokenSymbol: symbol,
    unscreened: formatAmount(unscreened, decimals),
    frozen: formatAmount(frozen, decimals),
  }
}

const HolderId = z.union([id('mwt'), id('cad')])

const HoldSummary = z.strictObject({
  wallets: z.int().describe('How many managed wallets and child addresses have money on hold.'),
  isWhole: z.boolean().meta({ description: 'False if more than 1,000 deposits are on hold: the rest is not counted.' }),
  amounts: z
    .array(
      z.strictObject({
        walletId: HolderId.describe('The managed wallet or child address.'),
        masterWalletId: id('mwt').nullable().describe('The wallet of a child address; null for a wallet itself.'),
        name: z.string().nullable().describe('Its name; null without one.'),
        chain: ChainName,
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
