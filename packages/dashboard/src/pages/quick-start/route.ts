import { createRoute, lazyRouteComponent } from '@tanstack/react-router'
import { shellRoute } from '../../shell/root-route.ts'

export const quickStartRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/quick-start',
    validateSearch: (search: Readonly<Record<string, unknown>>): { readonly with?: string } =>
      typeof search.with === 'string' ? { with: search.with } : {},
    component: lazyRouteComponent(() => import('./quick-start-page.tsx'), 'QuickStartPage'),
  }),
] as const
