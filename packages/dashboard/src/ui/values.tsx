import { Link } from '@tanstack/react-router'
import { Check, Copy, ExternalLink } from 'lucide-react'
import { type MouseEvent, use, useEffect, useState, useSyncExternalStore } from 'react'
import { ChainsContext } from '../api/chains.ts'
import { useWorkspace } from '../api/context.ts'
import { classes } from './classes.ts'
import { actualNetwork, explorerUrl } from './explorer.ts'
import { groupDecimal, middleTruncate, networkName } from './format.ts'
import { fullTime, shortTime } from './time.ts'
import { Tip } from './tip.tsx'

interface AmountProps {
  /** Decimal, as in the API. */
  readonly value: string
  readonly token: string
  /** In the token's smallest unit, shown on hover. */
  readonly raw?: string | undefined
  readonly className?: string
}

/** An amount with its token: significant decimals only, thousands grouped, tabular figures. */
export function Amount({ value, token, raw, className }: AmountProps) {
  const shown = (
    <span className={classes('num whitespace-nowrap', className)}>
      {groupDecimal(value)} <span className="text-ink-2">{token}</span>
    </span>
  )
  return raw === undefined ? shown : <Tip text={`${raw} in the smallest unit of ${token}`}>{shown}</Tip>
}

/** A small button beside a value. In a table it is there for the row that has the pointer or the focus: a page of rows has hundreds. */
const besideValue =
  'inline-flex size-5 shrink-0 items-center justify-center rounded-sm text-ink-3 hover:bg-well hover:text-ink row-idle:hidden'

interface IdProps {
  readonly value: string
  readonly whole?: boolean
  /** The page of what it names. */
  readonly to?: string | undefined
}

/** An id, an address or a hash: shortened in the middle, copied by a click on the icon. */
export function Id({ value, whole = false, to }: IdProps) {
  const shown = (
    <span className={classes('font-mono text-sm', whole ? 'break-all' : 'whitespace-nowrap')}>
      {whole ? value : middleTruncate(value)}
    </span>
  )
  return (
    <span className="group/id inline-flex max-w-full min-w-0 items-center gap-1">
      <Tip text={value}>
        {to === undefined ? (
          shown
        ) : (
          <Link to={to} className="text-accent-text hover:underline">
            {shown}
          </Link>
        )}
      </Tip>
      <CopyButton value={value} />
    </span>
  )
}

/** An address or a transaction of a chain, linked to the explorer of the network that the chain's name means here. */
export function OnChain({ value, network: chain, kind }: { value: string; network: string; kind: 'address' | 'tx' }) {
  const network = actualNetwork(chain, useWorkspace().environment)
  const url = explorerUrl(use(ChainsContext), { network, kind, value })
  const where = `${networkName(network)} explorer`
  return (
    <span className="inline-flex min-w-0 items-center gap-1">
      <Id value={value} />
      {url !== undefined && (
        <Tip text={`Open in the ${where}`}>
          <a
            href={url}
            target="_blank"
            rel="noreferrer"
            className={besideValue}
            aria-label={`Open ${value} in the ${where}`}
            onClick={stopPropagation}
          >
            <ExternalLink className="size-3.5" aria-hidden />
          </a>
        </Tip>
      )}
    </span>
  )
}

export function CopyButton({ value, label = 'Copy' }: { value: string; label?: string }) {
  const [copied, setCopied] = useState(false)
  useEffect(() => {
    if (!copied) return
    const timer = setTimeout(() => setCopied(false), 1_500)
    return () => clearTimeout(timer)
  }, [copied])
  const copy = (event: MouseEvent) => {
    event.preventDefault()
    event.stopPropagation()
    navigator.clipboard.writeText(value).then(
      () => setCopied(true),
      () => setCopied(false),
    )
  }
  return (
    <button type="button" onClick={copy} aria-label={copied ? 'Copied' : `${label} ${value}`} className={besideValue}>
      {copied ? <Check className="size-3.5 text-settled" aria-hidden /> : <Copy className="size-3.5" aria-hidden />}
    </button>
  )
}

/** A time in the reader's zone, near ones as an age; UTC on hover. */
export function Time({ at, full = false }: { at: string | null | undefined; full?: boolean }) {
  const now = useNow()
  if (at === null || at === undefined) return <span className="text-ink-3">not yet</span>
  const date = new Date(at)
  return (
    <time dateTime={at} className="num whitespace-nowrap">
      {full ? fullTime(date) : shortTime(date, now)}
    </time>
  )
}

function stopPropagation(event: MouseEvent): void {
  event.stopPropagation()
}

/** One clock for all times on the page, which moves every ten seconds. */
const clock = { now: new Date(), listeners: new Set<() => void>() }
const tickMs = 10_000
setInterval(() => {
  clock.now = new Date()
  for (const listener of clock.listeners) listener()
}, tickMs)

/** The current time, updated every ten seconds, for relative times. */
export function useNow(): Date {
  return useSyncExternalStore(
    (listener) => {
      clock.listeners.add(listener)
      return () => clock.listeners.delete(listener)
    },
    () => clock.now,
  )
}
