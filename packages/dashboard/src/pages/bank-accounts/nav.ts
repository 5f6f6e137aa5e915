import { CreditCard } from 'lucide-react'
import type { NavEntry } from '../../shell/section.ts'

export const bankAccountsNav: readonly NavEntry[] = [
  { label: 'Bank accounts', icon: CreditCard, path: '/bank-accounts', group: 'wallets' },
]
