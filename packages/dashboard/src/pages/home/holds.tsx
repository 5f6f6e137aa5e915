import type { HoldSummary } from '@purser/sdk'
import { Link } from '@tanstack/react-router'
import { PauseCircle } from 'lucide-react'
import { classes } from '../../ui/classes.ts'
import { addDecimals, count, groupDecimal, middleTruncate } from '../../ui/format.ts'
import type { Need } from './need.ts'

type HeldAmount = HoldSummary['amounts'][number]

/** More amounts than these are one line, which opens to the list of them. */
const linesMax = 3

/** Returns what screening keeps from leaving the wallets, or that it cannot be read. */
export function holdNeeds(holds: { readonly data: HoldSummary | undefined; readonly error: unknown }): readonly Need[] {
  const { data, error } = holds
  const icon = <PauseCircle />
  if (data === undefined)
    return error === null
      ? []
      : [{ key: 'holds', icon, text: 'The money on hold could not be loaded.', to: '/wallets' }]
  const { amounts, wallets, isWhole } = data
  if (amounts.length <= linesMax && isWhole)
    return amounts.map((held) => ({
      key: `${held.walletId} ${held.tokenSymbol}`,
      icon,
      text: `${amountOf(held)} of ${nameOf(held)} is on hold.`,
      to: `/wallets/${held.walletId}`,
      search: { view: 'on-hold' },
    }))
  const text = `Money is on hold in ${isWhole ? '' : 'more than '}${count(wallets, 'wallet')}.`
  return [{ key: 'holds', icon, text, details: <HeldAmounts amounts={amounts} wallets={wallets} /> }]
}

function HeldAmounts({ amounts, wallets }: Pick<HoldSummary, 'amounts' | 'wallets'>) {
  const shown = new Set(amounts.map(({ walletId }) => walletId)).size
  return (
    <details className="mt-0.5">
      <summary className="cursor-pointer text-sm text-accent-text">
        {shown < wallets ? `Show the newest ${shown}` : 'Show them'}
      </summary>
      <ul className="mt-1.5 flex max-h-72 flex-col gap-1.5 overflow-y-auto text-sm">
        {amounts.map((held) => (
          <li key={`${held.walletId} ${held.tokenSymbol}`} className="flex items-baseline justify-between gap-3">
            <Link
              to="/wallets/$walletId"
              params={{ walletId: held.walletId }}
              search={{ view: 'on-hold' }}
              className={classes(
                'min-w-0 truncate hover:text-accent-text hover:underline',
                held.name === null && 'font-mono',
              )}
            >
              {nameOf(held)}
            </Link>
            <span className="num whitespace-nowrap text-ink-2">{amountOf(held)}</span>
          </li>
        ))}
      </ul>
    </details>
  )
}

function amountOf({ unscreened, frozen, tokenSymbol }: HeldAmount): string {
  return `${groupDecimal(addDecimals([unscreened, frozen]))} ${tokenSymbol}`
}

function nameOf({ name, walletId }: HeldAmount): string {
  return name ?? middleTruncate(walletId)
}
