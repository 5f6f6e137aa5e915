import { useSyncExternalStore } from 'react'

export type Theme = 'light' | 'dark' | 'system'

const storageKey = 'purser-theme'
const prefersDark = matchMedia('(prefers-color-scheme: dark)')
const listeners = new Set<() => void>()

function readTheme(): Theme {
  const stored = localStorage.getItem(storageKey)
  return stored === 'light' || stored === 'dark' ? stored : 'system'
}

function apply(): void {
  const theme = readTheme()
  document.documentElement.classList.toggle('dark', theme === 'dark' || (theme === 'system' && prefersDark.matches))
  for (const listener of listeners) listener()
}

prefersDark.addEventListener('change', apply)
addEventListener('storage', ({ key }) => key === storageKey && apply())

export function setTheme(theme: Theme): void {
  if (theme === 'system') localStorage.removeItem(storageKey)
  else localStorage.setItem(storageKey, theme)
  apply()
}

export function useTheme(): Theme {
  return useSyncExternalStore((listener) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }, readTheme)
}
