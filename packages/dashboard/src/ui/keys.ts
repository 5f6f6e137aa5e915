import { useEffect, useRef } from 'react'

/** Runs an action for a single key, unless a field has the focus or a dialog is open. */
export function useKeys(acts: Readonly<Record<string, () => void>>): void {
  const latest = useRef(acts)
  useEffect(() => {
    latest.current = acts
  })
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const act = latest.current[event.key]
      if (act === undefined || event.metaKey || event.ctrlKey || event.altKey || event.defaultPrevented) return
      if (isTaken(event)) return
      event.preventDefault()
      act()
    }
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  }, [])
}

/**
 * Whether the focused element uses the key itself: fields use letters, buttons and links use Enter, and dialogs and
 * sheets use all keys.
 */
function isTaken({ target, key }: KeyboardEvent): boolean {
  if (document.querySelector('[role="dialog"][data-open]') !== null) return true
  if (!(target instanceof HTMLElement)) return false
  if (target.isContentEditable || target.matches('input, textarea, select')) return true
  return key === 'Enter' && target.closest('a, button, summary, [role="menuitem"]') !== null
}
