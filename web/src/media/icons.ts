/** Icon paths on a 24 by 24 grid, only for images and sound: loaded with the components that show them. */

export const drawn = {
  minus: "M5 12h14",
  pause: "M8.5 5.5v13M15.5 5.5v13",
  microphone: "M12 3a3 3 0 0 0-3 3v6a3 3 0 0 0 6 0V6a3 3 0 0 0-3-3zM5.5 11.5a6.5 6.5 0 0 0 13 0M12 18v3",
  speaker: "M4 9.5v5h3.5L12 18.5v-13L7.5 9.5zM15.5 9a4.2 4.2 0 0 1 0 6M18 6.5a8 8 0 0 1 0 11",
  picture: "M5 4h14a2 2 0 0 1 2 2v12a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2V6a2 2 0 0 1 2-2zM4 17l5-5 4 4 3-3 4 4M15.5 8.5h.01",
  camera: "M4 8h3.5L9 5.5h6L16.5 8H20a1 1 0 0 1 1 1v9a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V9a1 1 0 0 1 1-1zM12 10a3.3 3.3 0 1 0 0 6.6 3.3 3.3 0 0 0 0-6.6z",
  sliders: "M4 8h9M17 8h3M15 6v4M4 16h3M11 16h9M9 14v4",
  brush: "M19.5 4.5c-3 1-8 5.5-9.5 8.5l1.5 1.5c3-1.5 7.5-6.5 8-10zM9.5 13.5c-3-.5-3.5 2.5-5.5 5 3 1 7 0 7-3.5",
} as const;
