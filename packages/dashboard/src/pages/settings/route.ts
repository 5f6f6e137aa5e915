import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '../../shell/root-route.ts'

/** The API names `/settings/billing` as the `upgradeUrl` of every limit. */
export const settingsRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/settings',
    component: lazyRouteComponent(() => import('./settings-page.tsx'), 'SettingsPage'),
  }),
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/settings/billing',
    component: lazyRouteComponent(() => import('./billing-page.tsx'), 'BillingPage'),
  }),
] as const
