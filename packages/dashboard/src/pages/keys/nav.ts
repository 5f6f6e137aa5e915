import { Key } from 'lucide-react'
import type { NavEntry } from '../../shell/section.ts'

export const keysNav: readonly NavEntry[] = [
  { label: 'Keys', icon: Key, path: '/keys', group: 'developers', opens: [{ prefix: 'key_', path: () => '/keys' }] },
]
