import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '../../shell/root-route.ts'
import { isSearchText, type OpenSearch, readOpen } from '../../ui/search.ts'

interface TransfersSearch extends OpenSearch {
  readonly fromWalletId?: string
}

export const transfersRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/transfers',
    validateSearch: (search: Readonly<Record<string, unknown>>): TransfersSearch => ({
      ...readOpen(search),
      ...(isSearchText(search.fromWalletId) && { fromWalletId: search.fromWalletId }),
    }),
    component: lazyRouteComponent(() => import('./transfers-page.tsx'), 'TransfersPage'),
  }),
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/transfers/$transferId',
    component: lazyRouteComponent(() => import('./transfer-page.tsx'), 'TransferPage'),
  }),
] as const
