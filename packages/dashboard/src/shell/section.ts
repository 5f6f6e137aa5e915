import type { Environment, Purser, Role } from '@purser/sdk'
import type { QueryClient } from '@tanstack/react-query'
import type { LucideIcon } from 'lucide-react'
import type { ComponentType } from 'react'

/** The sheet or dialog of an action, shown over the page until it calls `onClose`. */
export type ActSheet = ComponentType<{ readonly onClose: () => void }>

/** An action of a section that the command palette offers on every page. */
export interface NavAct {
  readonly label: string
  readonly icon: LucideIcon
  /** The lowest role that may do it. */
  readonly needs: Role
  /** The environment to which it is restricted; both if omitted. */
  readonly only?: Environment
  /** Loads the sheet of the action, or runs the action directly. */
  readonly act:
    | { readonly load: () => Promise<ActSheet> }
    | { readonly run: (purser: Purser, queries: QueryClient) => Promise<void> }
}

/** An entry of the rail and of the command palette. */
export interface NavEntry {
  readonly label: string
  readonly icon: LucideIcon
  /** The path below that of the environment, such as `/payments`. */
  readonly path: string
  /** The group in the navigation. Entries of `person` are in the menu at its foot. */
  readonly group: 'money in' | 'wallets' | 'developers' | 'organisation' | 'person'
  /** The badge at the end of the entry, such as the number of waiting items. */
  readonly badge?: ComponentType
  /** Prefixes of ids. An id with one of them that is pasted into the command palette opens at this path. */
  readonly opens?: readonly { readonly prefix: string; readonly path: (id: string) => string }[]
  readonly acts?: readonly NavAct[]
}
