import { Tooltip } from '@base-ui/react/tooltip'
import { cloneElement, type ReactElement, useEffect, useState } from 'react'
import { fullTime, timeZone, utcTime } from './time.ts'

interface TipProps {
  readonly text: string
  readonly side?: 'top' | 'right'
  readonly children: ReactElement<Record<string, unknown>>
}

/** Gives an element a tooltip. `TipHost` shows it, so that thousands of cells need no tooltip of their own. */
export function Tip({ text, side = 'top', children }: TipProps) {
  return cloneElement(children, { 'data-tip': text, ...(side === 'right' && { 'data-tip-side': side }) })
}

const delayMs = 250
const tipped = '[data-tip], time[datetime]'

/** The one tooltip of the page, for the element that has the pointer or the keyboard's focus. Times show their zone and UTC. */
export function TipHost() {
  const [anchor, setAnchor] = useState<Element>()
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const show = (element: Element | undefined, ms: number) => {
      clearTimeout(timer)
      setAnchor(undefined)
      if (element !== undefined) timer = setTimeout(() => setAnchor(element), ms)
    }
    const hide = () => show(undefined, 0)
    const stop = new AbortController()
    const options = { signal: stop.signal, capture: true, passive: true }
    document.addEventListener('pointerover', ({ target }) => show(tippedAt(target), delayMs), options)
    document.addEventListener(
      'focusin',
      ({ target }) => target instanceof Element && target.matches(':focus-visible') && show(tippedAt(target), 0),
      options,
    )
    for (const type of ['focusout', 'pointerdown', 'scroll', 'keydown'] as const)
      document.addEventListener(type, hide, options)
    return () => {
      stop.abort()
      clearTimeout(timer)
    }
  }, [])
  if (anchor === undefined) return null
  const side = anchor.getAttribute('data-tip-side') === 'right' ? 'right' : 'top'
  return (
    <Tooltip.Root open>
      <Tooltip.Portal>
        <Tooltip.Positioner anchor={anchor} sideOffset={6} side={side} className="z-50">
          <Tooltip.Popup className="fade-in num max-w-80 rounded-control bg-ink px-2 py-1 text-xs break-words whitespace-pre-line text-page shadow-float">
            {wordsOf(anchor)}
          </Tooltip.Popup>
        </Tooltip.Positioner>
      </Tooltip.Portal>
    </Tooltip.Root>
  )
}

function tippedAt(target: EventTarget | null): Element | undefined {
  return target instanceof Element ? (target.closest(tipped) ?? undefined) : undefined
}

function wordsOf(element: Element): string {
  const text = element.getAttribute('data-tip')
  if (text !== null) return text
  const date = new Date(element.getAttribute('datetime') ?? '')
  return `${fullTime(date)} (${timeZone})\n${utcTime(date)}`
}
