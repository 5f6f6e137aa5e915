import type { NavEntry } from '../shell/section.ts'
import { accountNav } from './account/nav.ts'
import { approvalsNav } from './approvals/nav.ts'
import { auditNav } from './audit/nav.ts'
import { bankAccountsNav } from './bank-accounts/nav.ts'
import { eventsNav } from './events/nav.ts'
import { homeNav } from './home/nav.ts'
import { keysNav } from './keys/nav.ts'
import { logsNav } from './logs/nav.ts'
import { paymentsNav } from './payments/nav.ts'
import { quickStartNav } from './quick-start/nav.ts'
import { registryNav } from './registry/nav.ts'
import { sessionsNav } from './sessions/nav.ts'
import { settingsNav } from './settings/nav.ts'
import { teamNav } from './team/nav.ts'
import { transfersNav } from './transfers/nav.ts'
import { usageNav } from './usage/nav.ts'
import { vaultsNav } from './vaults/nav.ts'
import { walletsNav } from './wallets/nav.ts'
import { webhooksNav } from './webhooks/nav.ts'
import { withdrawalsNav } from './withdrawals/nav.ts'

/** The entries of the rail, in its order: one line for each section. */
export const navigation: readonly NavEntry[] = [
  ...homeNav,
  ...paymentsNav,
  ...registryNav,
  ...sessionsNav,
  ...vaultsNav,
  ...walletsNav,
  ...transfersNav,
  ...withdrawalsNav,
  ...bankAccountsNav,
  ...approvalsNav,
  ...quickStartNav,
  ...keysNav,
  ...webhooksNav,
  ...eventsNav,
  ...logsNav,
  ...teamNav,
  ...usageNav,
  ...auditNav,
  ...settingsNav,
  ...accountNav,
]
