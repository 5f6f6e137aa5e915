import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '../../shell/root-route.ts'
import { readOpen } from '../../ui/search.ts'
import { type WalletSearch, walletViews } from './views.ts'

export interface WalletsSearch {
  /** `own` lists the wallets whose keys the organisation keeps; otherwise the managed wallets. */
  readonly kind?: 'own'
}

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
      const view = walletViews.find((one) => one === search.view)
      return {
        ...(view !== undefined && { view }),
        ...(view === 'sweeps' && readOpen(search)),
      }
    },
    component: lazyRouteComponent(() => import('./wallet-page.tsx'), 'WalletPage'),
  }),
] as const
