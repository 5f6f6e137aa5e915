import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '../../shell/root-route.ts'
import type { WalletSearch } from './wallet-page.tsx'

export interface WalletsSearch {
  /** The wallets whose keys the organization keeps, in place of those of the service. */
  readonly kind?: 'own'
}

const views = ['children', 'on-hold'] as const

export const walletsRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/wallets',
    validateSearch: ({ kind }: Readonly<Record<string, unknown>>): WalletsSearch => (kind === 'own' ? { kind } : {}),
    component: lazyRouteComponent(() => import('./wallets-page.tsx'), 'WalletsPage'),
  }),
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/wallets/$walletId',
    validateSearch: (search: Readonly<Record<string, unknown>>): WalletSearch => {
      const view = views.find((one) => one === search.view)
      return view === undefined ? {} : { view }
    },
    component: lazyRouteComponent(() => import('./wallet-page.tsx'), 'WalletPage'),
  }),
] as const
