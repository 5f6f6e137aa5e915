import type { Balance } from '@purser/sdk'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Amount } from '../../ui/values.tsx'

interface BalancePartsProps {
  readonly parts: NonNullable<Balance['parts']>
  readonly token: string
  readonly walletId: string
}

const isSome = (amount: string): boolean => /[1-9]/.test(amount)
const linked = 'text-accent-text hover:underline'

/** Parts of a balance: what can be sent, and what is reserved or on hold, with links to what reserves it and to the deposits on hold. */
export function BalanceParts({ parts, token, walletId }: BalancePartsProps) {
  const { available, reserved, unscreened, frozen, notFinal } = parts
  const amount = (value: string) => <Amount value={value} token={token} />
  const linkTo = (view: 'on-hold' | 'reserved', value: string) => (
    <Link to="/wallets/$walletId" params={{ walletId }} search={{ view }} resetScroll={false} className={linked}>
      {amount(value)}
    </Link>
  )
  return (
    <dl className="mt-1 flex flex-wrap gap-x-5 gap-y-2 pb-1 text-sm">
      <Part name="Available">{amount(available)}</Part>
      <Part name="Reserved">{isSome(reserved) ? linkTo('reserved', reserved) : amount(reserved)}</Part>
      {isSome(unscreened) && <Part name="On hold: in screening">{linkTo('on-hold', unscreened)}</Part>}
      {isSome(frozen) && <Part name="On hold: frozen">{linkTo('on-hold', frozen)}</Part>}
      {!isSome(unscreened) && !isSome(frozen) && <Part name="On hold">{amount('0')}</Part>}
      {isSome(notFinal) && <Part name="Not final">{amount(notFinal)}</Part>}
    </dl>
  )
}

function Part({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="min-w-22">
      <dt className="text-ink-3">{name}</dt>
      <dd className="text-ink-2">{children}</dd>
    </div>
  )
}
