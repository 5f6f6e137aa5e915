import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '../../shell/root-route.ts'
import { readOpen } from '../../ui/search.ts'

export const withdrawalsRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/withdrawals',
    validateSearch: readOpen,
    component: lazyRouteComponent(() => import('./withdrawals-page.tsx'), 'WithdrawalsPage'),
  }),
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/withdrawals/$withdrawalId',
    component: lazyRouteComponent(() => import('./withdrawal-page.tsx'), 'WithdrawalPage'),
  }),
] as const
