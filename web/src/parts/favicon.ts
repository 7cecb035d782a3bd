/** Shows how many approval requests wait: in the icon of the tab, and at the icon of the installed web UI. */

import { withBase } from "../basePath";

const PLAIN = withBase("/assets/icon.svg");

function drawn(count: number): string {
  const words = count > 99 ? "99" : String(count);
  const svg =
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><circle cx="16" cy="16" r="16" fill="#c2760b"/>' +
    `<text x="16" y="22.5" text-anchor="middle" font-family="sans-serif" font-weight="700" font-size="19" fill="#fff">${words}</text></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

export function showCount(count: number): void {
  const link = document.querySelector<HTMLLinkElement>("link[rel~=icon]");
  if (link) link.href = count ? drawn(count) : PLAIN;
  // if the web UI is installed
  void (count ? navigator.setAppBadge?.(count) : navigator.clearAppBadge?.())?.catch(() => undefined);
}
