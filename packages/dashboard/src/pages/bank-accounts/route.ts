import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '../../shell/root-route.ts'

export const bankAccountsRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/bank-accounts',
    component: lazyRouteComponent(() => import('./bank-accounts-page.tsx'), 'BankAccountsPage'),
  }),
] as const
