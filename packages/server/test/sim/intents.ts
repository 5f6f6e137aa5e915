import { type Address, formatAmount } from '@purser/protocol'
import { createTransfer } from '../../src/features/transfers/transfer.ts'
import { requestSweep } from '../../src/features/wallets/sweep/request.ts'
import { createWithdrawal } from '../../src/features/withdrawals/withdraw/withdraw.ts'
import type { Ctx } from '../../src/modules.ts'
import { isProblem } from '../../src/platform/errors.ts'
import type { Id } from '../../src/platform/ids.ts'
import { Reply } from '../../src/platform/operation.ts'
import type { Chance } from './chance.ts'
import { sandbox, worthIn } from './market.ts'
import type { SimWallet } from './wallet-stage.ts'

export const intentKinds = ['transfer', 'transfer', 'transfer', 'swap', 'bridge', 'withdrawal'] as const
type IntentKind = (typeof intentKinds)[number]

/** Money that a caller wants to move. No other of a history has its amount, so that the chain itself says what became of it. */
export interface Intent {
  readonly kind: IntentKind
  readonly wallet: SimWallet
  readonly asset: 'USDC' | 'ETH'
  readonly rawAmount: bigint
  /** Whom the chain must show as receiving it; undefined for a payout, whose address the partner names. */
  readonly target: Address | undefined
  readonly recipient: Address
  readonly requestedAtMs: number
  /** How many restores came before. */
  readonly era: number
  /** Whether the recipient was listed when it was requested. */
  readonly isListed: boolean
  /** `refused`: the caller was answered no, `unanswered`: the process died. */
  state: 'requested' | 'accepted' | 'refused' | 'unanswered'
  id?: string
  refusal?: string
}

export interface Wish {
  readonly kind: IntentKind
  readonly wallet: SimWallet
  readonly recipient: Address
  readonly isListed: boolean
  readonly requestedAtMs: number
  readonly era: number
  readonly count: number
  readonly chance: Chance
}

const zero: Address = `0x${'0'.repeat(40)}`
const usdc: Address = `0x${'1'.repeat(40)}`

export function intentOf({ kind, wallet, recipient, count, chance, ...facts }: Wish): Intent {
  const isCoin = kind !== 'withdrawal' && !wallet.isChild && chance.happens(0.3)
  const rawAmount = amountOf(kind, { isCoin, count, chance })
  const target = { transfer: recipient, swap: sandbox.pool, bridge: sandbox.bridge, withdrawal: undefined }[kind]
  return { ...facts, kind, wallet, recipient, target, rawAmount, asset: isCoin ? 'ETH' : 'USDC', state: 'requested' }
}

function amountOf(
  kind: IntentKind,
  { isCoin, count, chance }: { readonly isCoin: boolean; readonly count: number; readonly chance: Chance },
): bigint {
  const unique = BigInt(count)
  // The two decimals of the amount select the sandbox's outcome of a payout.
  if (kind === 'withdrawal') return 50_000_000n + 10_000n * BigInt(chance.below(5)) + unique
  if (isCoin) return 10n ** 15n * BigInt(1 + chance.below(150)) + unique
  return 1_000_000n * BigInt(1 + chance.below(chance.happens(0.2) ? 300 : 40)) + unique
}

/** Requests it of a process; what the caller is answered is written into the intent. */
export async function request(ctx: Ctx, intent: Intent, bankAccountId: Id<'bac'>): Promise<void> {
  try {
    const made =
      intent.kind === 'withdrawal'
        ? await withdraw(ctx, intent, bankAccountId)
        : await createTransfer(ctx, bodyOf(intent))
    if (made instanceof Reply) throw new Error('no policy of a simulation requires an approval')
    intent.id = made.id
    intent.state = 'accepted'
  } catch (error) {
    const isAnswered = isProblem(error)
    const made = isAnswered ? (error.members.transferId ?? error.members.withdrawalId) : undefined
    intent.state = !isAnswered ? 'unanswered' : made === undefined ? 'refused' : 'accepted'
    if (typeof made === 'string') intent.id = made
    if (isAnswered) intent.refusal = error.code
    throw error
  }
}

function bodyOf({ kind, wallet, asset, rawAmount, recipient }: Intent): Parameters<typeof createTransfer>[1] {
  const isCoin = asset === 'ETH'
  const amount = formatAmount(rawAmount, isCoin ? 18 : 6)
  const toToken = kind === 'swap' ? (isCoin ? 'USDC' : 'ETH') : asset
  const toChain = kind === 'bridge' ? 'arbitrum' : 'ethereum'
  const worth = (worthIn(isCoin ? zero : usdc, rawAmount) * 98n) / 100n
  const minToAmount = kind === 'swap' ? { minToAmount: formatAmount(worth, isCoin ? 6 : 18) } : {}
  return { fromWalletId: wallet.id, fromToken: asset, toAddress: recipient, toChain, toToken, amount, ...minToAmount }
}

function withdraw(ctx: Ctx, { wallet, rawAmount }: Intent, bankAccountId: Id<'bac'>) {
  const amount = formatAmount(rawAmount, 6)
  return createWithdrawal(ctx, { fromWalletId: wallet.id, amount, token: 'USDC', chain: 'ethereum', bankAccountId })
}

export async function sweepAll(ctx: Ctx, { masterId }: SimWallet): Promise<void> {
  await requestSweep(ctx, masterId, { token: 'USDC' })
}

export const nameOf = ({ kind, asset, rawAmount, wallet, state }: Intent): string =>
  `a ${kind} of ${rawAmount} ${asset} from ${wallet.address} (${state})`
