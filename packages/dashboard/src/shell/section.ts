import type { LucideIcon } from 'lucide-react'
import type { ComponentType } from 'react'

/** An entry of the rail and of the command palette. */
export interface NavEntry {
  readonly label: string
  readonly icon: LucideIcon
  /** Below the environment, such as `/payments`. */
  readonly path: string
  /** The group in the navigation. Entries of `person` are in the menu at its foot. */
  readonly group: 'money in' | 'wallets' | 'developers' | 'organization' | 'person'
  /** The badge at the end of the entry, such as the number of waiting items. */
  readonly badge?: ComponentType
  /** Prefixes of ids that this section shows: a pasted one opens there. */
  readonly opens?: readonly { readonly prefix: string; readonly path: (id: string) => string }[]
}
