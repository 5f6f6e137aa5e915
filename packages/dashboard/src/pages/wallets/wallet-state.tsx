import type { WalletTransaction } from '@purser/sdk'
import { middleTruncate } from '../../ui/format.ts'
import { type MoneyState, StateBadge } from '../../ui/state.tsx'
import { type AnyWallet, isManaged } from './queries.ts'

interface Standing {
  readonly state: MoneyState
  readonly word: string
  readonly sentence: string
}

/** The state of a wallet, as a word and as a sentence. */
export function standingOf(wallet: AnyWallet): Standing {
  if (isManaged(wallet))
    return wallet.provisionStatus === 'active'
      ? { state: 'settled', word: 'Active', sentence: 'The service keeps its key. Money leaves it under its policy.' }
      : {
          state: 'void',
          word: 'Retired',
          sentence:
            'It takes no payments and sends nothing. Its address stays watched, so later deposits are still reported.',
        }
  if (wallet.amlStatus === 'flagged')
    return {
      state: 'failed',
      word: 'Flagged',
      sentence: 'Screening names its address as sanctioned. It takes no payments until a screening clears it.',
    }
  return wallet.amlStatus === 'clear'
    ? {
        state: 'settled',
        word: 'Active',
        sentence: 'You keep its key. It takes payments; the service cannot spend from it.',
      }
    : { state: 'pending', word: 'In screening', sentence: 'It takes payments while its address is screened.' }
}

export function WalletBadge({ wallet }: { wallet: AnyWallet }) {
  const { state, word } = standingOf(wallet)
  return <StateBadge state={state}>{word}</StateBadge>
}

export function walletName({ name, id }: Pick<AnyWallet, 'name' | 'id'>): string {
  return name ?? middleTruncate(id)
}

/** Whether money came in that cannot be spent: its sender is in screening, or some of it is frozen. */
function isOnHold({ direction, status, amlStatus, frozenAmount }: WalletTransaction): boolean {
  if (direction !== 'in' || status === 'withdrawn') return false
  return amlStatus === 'pending' || amlStatus === 'flagged' || /[1-9]/.test(frozenAmount)
}

/** Returns the state of the money of one deposit or transfer, and the word for it. */
export function transactionStanding(row: WalletTransaction): Omit<Standing, 'sentence'> {
  if (row.status === 'withdrawn') return { state: 'void', word: 'Reorganized' }
  if (isOnHold(row)) return { state: 'held', word: row.amlStatus === 'pending' ? 'In screening' : 'On hold' }
  if (row.status === 'pending') return { state: 'pending', word: 'Not final' }
  return { state: 'settled', word: row.direction === 'in' ? 'Received' : 'Sent' }
}
